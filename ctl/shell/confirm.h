/* SPDX-License-Identifier: Apache-2.0 */
/* The question before what may be a mistake that nobody can put right. */
#ifndef TL_CTL_SHELL_CONFIRM_H
#define TL_CTL_SHELL_CONFIRM_H

#include "ctl/shell/command.h"

/* Asks on the terminal, and returns TL_EXIT_OK when the answer is yes; with --yes it does not ask.
 * Without a terminal to ask on, or for another answer, it says so on standard error and returns
 * TL_EXIT_UNCONFIRMED.
 * what: sentences with what will happen, and that it cannot be undone. word: what to type, such as
 * the name of a queue; NULL: "y" or "yes" is enough. */
int tl_ctl_confirm(const struct tl_ctl_options *options, const char *what, const char *word);

#endif
