/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a command that has done its work. */
#ifndef TL_CTL_CALLS_TELL_H
#define TL_CTL_CALLS_TELL_H

#include <jansson.h>

#include "ctl/shell/command.h"

/* Writes the answer with --json, else the printf-style sentence, and releases the answer. Returns
 * the exit status. */
int tl_ctl_tell(const struct tl_ctl_options *options, json_t *answer, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Asks with GET, and writes the answer: with --json as it is, else by write_answer, which returns
 * false when there is no memory or standard output fails. Returns the exit status. */
int tl_ctl_show(const struct tl_ctl_options *options, const char *target,
                bool (*write_answer)(const json_t *answer));

/* The exit status after an answer was written to standard output, or not: then it says so. */
int tl_ctl_written(bool ok);

#endif
