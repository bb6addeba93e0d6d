/* From text to settings: the steps of tl_config_load, each testable alone. */
#ifndef TL_CONFIG_READ_H
#define TL_CONFIG_READ_H

#include <stdbool.h>

#include "common/base/error.h"
#include "common/config/config.h"
#include "common/config/config_yaml.h"

/* Applies a whole file's tree to a config that holds defaults (or, for single settings, anything).
 * `name` stands for the file in messages. On failure the config is half changed and fit only for
 * freeing. */
bool tl_config_read(struct tl_config *config, const char *name, const struct tl_yaml *root,
                    struct tl_error *err);
/* Replaces all queues by those of the mapping. */
bool tl_config_read_queues(struct tl_config *config, const char *name, const struct tl_yaml *queues,
                           struct tl_error *err);

/* Applies the TELLERLINE_* variables of an environment (`NAME=value` strings, ended by NULL).
 * NAME_FILE names a file with the value of NAME, for secrets; both together are an error, and so
 * are unknown ones. TELLERLINE_CONFIG, TELLERLINE_SEED and TELLERLINE_TEST_* are no settings and
 * passed over. */
bool tl_config_read_env(struct tl_config *config, char *const *environment, struct tl_error *err);

#endif
