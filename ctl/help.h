/* SPDX-License-Identifier: Apache-2.0 */
/* What `--help` says. */
#ifndef TL_CTL_HELP_H
#define TL_CTL_HELP_H

#include <stdio.h>

#include "ctl/shell/command.h"

/* Writes the list of all commands. first: only those whose names begin with this word; NULL: all.
 */
void tl_ctl_help_list(const char *first, FILE *out);
/* Writes the help of one command. */
void tl_ctl_help_command(const struct tl_ctl_command *command, FILE *out);

/* What an exit status means (command.h), as for all commands. Static storage. */
const char *tl_ctl_help_status(int status);

#endif
