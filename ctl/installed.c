/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <unistd.h>

#include "ctl/installed.h"

bool tl_installed_counts(const struct tl_ctl_command *command)
{
    return (command->options & TL_OPTION_CONFIG) != 0 &&
           (command->options & (TL_OPTION_PROCESSES | TL_OPTION_PLAN)) == 0;
}

bool tl_installed_find(const struct tl_ctl_command *command, const char *path,
                       struct tl_ctl_options *options, struct tl_error *err)
{
    const char *redis = getenv("TELLERLINE_REDIS_URL");
    if (!tl_installed_counts(command) || options->config != NULL || options->redis != NULL ||
        options->server != NULL || options->data != NULL || (redis != NULL && *redis != '\0') ||
        access(path, F_OK) != 0)
        return true;
    if (access(path, R_OK) != 0)
        return tl_error_set(err, TL_ERR_INVALID,
                            "%s: not readable: use sudo, or say where the system is "
                            "(--config, --redis, --server)",
                            path);
    options->config = path;
    return true;
}
