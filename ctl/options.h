/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of one command: its options in any order among the operands. */
#ifndef TL_CTL_OPTIONS_H
#define TL_CTL_OPTIONS_H

#include "common/role/options.h"

#include "ctl/shell/shell.h"

/* Parses the arguments; argv[0] is the name of the command. argv is reordered: options->words are
 * the operands. TL_ERR_INVALID names the argument. With --help, the operands are not checked. */
bool tl_ctl_options_parse(const struct tl_ctl_command *command, int argc, char **argv,
                          struct tl_ctl_options *options, struct tl_error *err);

/* The same, but any number of operands is good. */
bool tl_ctl_options_read(const struct tl_ctl_command *command, int argc, char **argv,
                         struct tl_ctl_options *options, struct tl_error *err);

/* The options that the command takes, for *options; ends with a row without a name. */
void tl_ctl_options_rows(const struct tl_ctl_command *command, struct tl_ctl_options *options,
                         struct tl_option table[TL_OPTIONS_MAX + 1]);

/* Where nothing says what the system is, neither an option nor the environment, it is that of the
 * file `path`, which a package installed; but not for `up`, which runs a system of its own, nor
 * `plan`, which only computes. TL_ERR_INVALID when only others may read that. */
bool tl_installed_find(const struct tl_ctl_command *command, const char *path,
                       struct tl_ctl_options *options, struct tl_error *err);

#endif
