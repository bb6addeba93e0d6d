/* SPDX-License-Identifier: Apache-2.0 */
/* Reading settings: of the file, of the environment, and of the body of an admin call, by the same
 * rows. Every mistake is noted, not only the first. */
#ifndef TL_CONFIG_READ_H
#define TL_CONFIG_READ_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/error.h"
#include "common/config/mistakes.h"
#include "common/config/settings.h"
#include "common/config/table.h"
#include "common/config/yaml.h"

/* A mapping that is read against rows. */
struct tl_section {
    const char *source; /* the file, or the variable, for messages; NULL: a body, without places */
    const char *owner;  /* for messages: "", or "queues.demo." */
    const struct tl_setting *rows;
    size_t n;
    void *base;                    /* the struct that the rows are fields of */
    struct tl_yaml_place *places;  /* of each row, set where it is read; line 0: it is not */
    const struct tl_section *next; /* another table for entries of the same mapping; or NULL */
    const char *const *others;     /* names beside the rows that may have been meant; or NULL */
    struct tl_mistakes *mistakes;
};

/* Reads what the mapping names into the fields; all others stay. `rate.admit: 5` is the same as
 * `rate: {admit: 5}`. In a body null gives the default; in a file it is the empty text. */
void tl_settings_read(const struct tl_section *section, const struct tl_yaml *mapping);
/* Reads the value of one row. */
void tl_setting_read(const struct tl_section *section, const struct tl_setting *row,
                     const struct tl_yaml *node);

/* Applies a whole file's tree to a config that holds defaults (or, for single settings, anything).
 * `name` stands for the file in messages. After a mistake the config is fit only for freeing. */
void tl_config_read(struct tl_config *config, const char *name, const struct tl_yaml *root,
                    struct tl_mistakes *mistakes);
/* Frees the queues, with what they own. */
void tl_config_free_queues(struct tl_config *config);
/* Replaces all queues by those of the mapping. */
void tl_config_read_queues(struct tl_config *config, const char *name, const struct tl_yaml *queues,
                           struct tl_mistakes *mistakes);
/* Replaces all webhooks by those of the list. */
void tl_config_read_webhooks(struct tl_config *config, const char *name,
                             const struct tl_yaml *webhooks, struct tl_mistakes *mistakes);

/* Applies the TELLERLINE_* variables of an environment (`NAME=value` strings, ended by NULL).
 * NAME_FILE names a file with the value of NAME, for secrets; both together are an error, and so
 * are unknown ones. TELLERLINE_CONFIG, TELLERLINE_TOKEN, TELLERLINE_SEED and TELLERLINE_TEST_* are
 * not settings and are ignored. */
void tl_config_read_env(struct tl_config *config, char *const *environment,
                        struct tl_mistakes *mistakes);

#endif
