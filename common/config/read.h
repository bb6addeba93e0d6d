/* SPDX-License-Identifier: Apache-2.0 */
/* Applying the tree of a YAML file to the settings. */
#ifndef TL_CONFIG_READ_H
#define TL_CONFIG_READ_H

#include <stdbool.h>

#include "common/base/error.h"
#include "common/config/settings.h"
#include "common/config/yaml.h"

/* Applies a whole file's tree to a config that holds defaults (or, for single settings, anything).
 * `name` stands for the file in messages. On failure the config is half changed and fit only for
 * freeing. */
bool tl_config_read(struct tl_config *config, const char *name, const struct tl_yaml *root,
                    struct tl_error *err);
/* Frees the queues, with what they own. */
void tl_config_free_queues(struct tl_config *config);
/* Replaces all queues by those of the mapping. */
bool tl_config_read_queues(struct tl_config *config, const char *name, const struct tl_yaml *queues,
                           struct tl_error *err);
/* Replaces all hooks by those of the list. */
bool tl_config_read_hooks(struct tl_config *config, const char *name, const struct tl_yaml *hooks,
                          struct tl_error *err);

#endif
