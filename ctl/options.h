/* The command line of one command: its options in any order among the operands. */
#ifndef TL_CTL_OPTIONS_H
#define TL_CTL_OPTIONS_H

#include <stdio.h>

#include "ctl/command.h"

/* Parses the arguments; argv[0] is the name of the command. argv is reordered: options->words are
 * the operands. TL_ERR_INVALID names the argument. With --help, the operands are not checked. */
bool tl_ctl_options_parse(const struct tl_ctl_command *command, int argc, char **argv,
                          struct tl_ctl_options *options, struct tl_error *err);

/* Writes the help of one command. */
void tl_ctl_options_help(const struct tl_ctl_command *command, FILE *out);

#endif
