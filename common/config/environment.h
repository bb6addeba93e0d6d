/* SPDX-License-Identifier: Apache-2.0 */
/* Applying the environment to the settings. */
#ifndef TL_CONFIG_ENVIRONMENT_H
#define TL_CONFIG_ENVIRONMENT_H

#include <stdbool.h>

#include "common/base/error.h"
#include "common/config/settings.h"

/* Applies the TELLERLINE_* variables of an environment (`NAME=value` strings, ended by NULL).
 * NAME_FILE names a file with the value of NAME, for secrets; both together are an error, and so
 * are unknown ones. TELLERLINE_CONFIG, TELLERLINE_SEED and TELLERLINE_TEST_* are not settings and
 * are ignored. */
bool tl_config_read_env(struct tl_config *config, char *const *environment, struct tl_error *err);

#endif
