/* The end of a command that has done its work. */
#ifndef TL_CTL_TELL_H
#define TL_CTL_TELL_H

#include <jansson.h>

#include "ctl/command.h"

/* Writes the answer with --json, else the printf-style sentence, and releases the answer. Returns
 * the exit status. */
int tl_ctl_tell(const struct tl_ctl_options *options, json_t *answer, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
