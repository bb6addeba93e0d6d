/* What `top` shows of misuse: a line for each queue with signs of it. */
#ifndef TL_CTL_SIGNS_H
#define TL_CTL_SIGNS_H

#include "common/base/text.h"
#include "common/store/signs.h"

/* Lines are no longer than this. */
#define TL_CTL_SIGNS_COLUMNS 80

/* Appends the signs of a queue in the last minute, over several lines if need be; nothing if there
 * are none: no network sent more than 60 joins or failed checks, and no session looks misused. */
void tl_ctl_signs_write(const char *queue, const struct tl_signs *signs, struct tl_text *out);

#endif
