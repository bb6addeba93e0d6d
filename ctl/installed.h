/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration that a package installed. */
#ifndef TL_CTL_INSTALLED_H
#define TL_CTL_INSTALLED_H

#include "ctl/shell/command.h"

#define TL_INSTALLED_CONFIG "/etc/tellerline/tellerline.yaml"

/* Does the command use the file of the package? `up` runs a system of its own, and `plan` only
 * computes. */
bool tl_installed_counts(const struct tl_ctl_command *command);

/* Where nothing says what the system is, neither an option nor the environment, it is that of the
 * file `path`, which a package installed. TL_ERR_INVALID when only others may read that. */
bool tl_installed_find(const struct tl_ctl_command *command, const char *path,
                       struct tl_ctl_options *options, struct tl_error *err);

#endif
