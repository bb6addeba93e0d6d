/* SPDX-License-Identifier: Apache-2.0 */
/* What `top` shows of misuse: lines for each queue with signs of it. */
#ifndef TL_CTL_CALLS_SIGNS_H
#define TL_CTL_CALLS_SIGNS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/base/text.h"
#include "common/store/keys.h"
#include "common/store/redis.h"
#include "common/store/signs.h"

/* Lines are no longer than this. */
#define TL_CTL_SIGNS_COLUMNS 80

/* Adds up the entries of tl:{q}:signs of the last minute. now_ms: Unix time by the store's clock.
 */
bool tl_ctl_signs_read(struct tl_redis *redis, const struct tl_keys *keys, int64_t now_ms,
                       struct tl_signs *signs, struct tl_error *err);
/* Appends the signs of a queue in the last minute, over several lines if need be; nothing if there
 * are none: no network sent more than 60 joins or failed checks, and no session looks misused. */
void tl_ctl_signs_write(const char *queue, const struct tl_signs *signs, struct tl_text *out);

#endif
