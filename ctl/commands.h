/* SPDX-License-Identifier: Apache-2.0 */
/* The table of all commands. The help, the manual page and the completions come from it. */
#ifndef TL_CTL_COMMANDS_H
#define TL_CTL_COMMANDS_H

#include "ctl/shell/shell.h"

/* All commands, those of a group one after another. Static storage. */
const struct tl_ctl_command *tl_ctl_commands(size_t *n);
/* The title of a group, for lists of commands. */
const char *tl_ctl_group_title(enum tl_ctl_group group);

/* The command whose name the words begin with; *used gets how many words that is. NULL: there is
 * none. */
const struct tl_ctl_command *tl_ctl_command_find(int n_words, char *const *words, int *used);
/* Does a name of two words begin with this one? */
bool tl_ctl_command_begins(const char *word);

#endif
