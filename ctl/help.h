/* SPDX-License-Identifier: Apache-2.0 */
/* What is made of the table of commands: `--help`, the manual page, the completions of the shells.
 */
#ifndef TL_CTL_HELP_H
#define TL_CTL_HELP_H

#include <stdio.h>

#include "ctl/shell/shell.h"

/* Writes the list of all commands. first: only those whose names begin with this word; NULL: all.
 */
void tl_ctl_help_list(const char *first, FILE *out);
/* Writes the help of one command. */
void tl_ctl_help_command(const struct tl_ctl_command *command, FILE *out);

/* `tellerline manual`: writes the manual page to standard output, in the language of man(7). */
void tl_ctl_manual(void);

/* `tellerline complete -- WORD...`, what the completions of the shells ask (ctl/completion/):
 * writes what the last of the words, which follow `tellerline`, can become: a line for each,
 * "WORD<tab>DESCRIPTION"; or the line ":files" or ":folders", when it is the name of one. The words
 * are reordered. */
void tl_ctl_complete(int n, char **words);

/* What the operands of a command are, by their names in its usage line. */
enum tl_operand {
    TL_OPERAND_NONE,  /* there is none at this place */
    TL_OPERAND_OTHER, /* anything */
    TL_OPERAND_QUEUE,
    TL_OPERAND_ASSIGNMENT, /* SETTING=VALUE, of a queue */
    TL_OPERAND_FILE,
    TL_OPERAND_FOLDER,
};
/* The i-th operand (from 0) of a usage line such as "QUEUE SETTING=VALUE..."; NULL: without any. */
enum tl_operand tl_operand_at(const char *words, int i);

#endif
