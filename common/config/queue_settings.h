/* SPDX-License-Identifier: Apache-2.0 */
/* The settings of one queue by name, as text: for the store, the admin API and `tellerline`. */
#ifndef TL_QUEUE_SETTINGS_H
#define TL_QUEUE_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/error.h"
#include "common/config/settings.h"
#include "common/config/value.h"

/* One queue setting by name, as in the hash tl:{q}:config: "rate.admit". Types and
 * bounds are those of the file, as the table is the same. The form says who wrote the value: a
 * person, or the store. In both, booleans are "true" or "false", lanes are joined by ",", and
 * default_lane is a name. On failure nothing is changed. New lanes keep the default lane of the
 * same name, else the last lane becomes it; so set lanes before default_lane. */
bool tl_queue_settings_set(struct tl_queue_settings *settings, const char *name, const char *value,
                           enum tl_setting_form form, struct tl_error *err);
/* The i-th setting in the store's form: *name (static) and value, for which TL_QUEUE_VALUE_MAX
 * bytes are enough. False past the end. Every setting is listed. */
bool tl_queue_settings_get(const struct tl_queue_settings *settings, size_t i, const char **name,
                           char *value, size_t value_size);
/* Are all of them the same, but for when they were changed? */
bool tl_queue_settings_same(const struct tl_queue_settings *a, const struct tl_queue_settings *b);
/* How people read the stored value of a setting: "10s", "80%". What is no setting, or makes no
 * sense, stays as it is. Returns `value`, or `text`, which has room for TL_QUEUE_VALUE_MAX bytes.
 */
const char *tl_queue_setting_show(const char *name, const char *value, char *text);
/* The capacity that counts now: a steered one is what the site's reports have made of it,
 * within the bounds of the settings. As settings.capacity in common/store/line. */
uint64_t tl_queue_capacity(const struct tl_queue_settings *settings);
/* The longest that a session lasts from its claim, in ms: a sliding one session_max. */
int64_t tl_queue_session_longest_ms(const struct tl_queue_settings *settings);
/* What the operator says of a queue that is sold out, or closed in any other mode: texts by
 * language (common/config/texts.h); "": nothing. */
const char *tl_queue_closed_texts(const struct tl_queue_settings *settings,
                                  enum tl_queue_mode mode);
/* Defaults as documented. */
void tl_queue_settings_defaults(struct tl_queue_settings *settings);
/* Bounds that span settings: a policy by rate needs a rate, session_max >= session_ttl when
 * sliding, ... */
bool tl_queue_settings_validate(const struct tl_queue_settings *settings, struct tl_error *err);

/* One setting that the file has and that is another one in the store, whose settings apply to a
 * queue that exists: both values as people read them. The texts are borrowed for the call. */
typedef void tl_file_difference(void *context, const struct tl_setting *row, const char *file,
                                const char *store);
/* Calls `differs` for each of them. What the file does not have is left to the store. */
void tl_file_settings_compare(const struct tl_queue_config *file,
                              const struct tl_queue_settings *store, tl_file_difference *differs,
                              void *context);
/* Logs a line for each of them. */
void tl_file_settings_log(const struct tl_queue_config *file,
                          const struct tl_queue_settings *store);

#endif
