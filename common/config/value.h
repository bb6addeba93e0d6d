/* The value of a setting: from text into its field, and back. */
#ifndef TL_CONFIG_VALUE_H
#define TL_CONFIG_VALUE_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/error.h"
#include "common/config/table.h"

/* Whether the value is text as the file writes it, or as the store keeps it: plain milliseconds for
 * durations and times, commas between lanes. The second also takes the first. */
enum tl_setting_form { TL_FORM_FILE, TL_FORM_STORE };

/* Parses the value and stores it in the field of `base`; on failure nothing is changed and err says
 * what is wrong with it and what the limit is. The value of a plain string is never part of the
 * message, as it may hold a password. */
bool tl_setting_set(const struct tl_setting *row, void *base, const char *value,
                    enum tl_setting_form form, struct tl_error *err);
/* The field's value as the store keeps it. TL_QUEUE_VALUE_MAX bytes are always enough. */
void tl_setting_get(const struct tl_setting *row, const void *base, char *value, size_t size);
/* The same as the file writes it: "10m", "2026-12-01T11:00:00Z". */
void tl_setting_show(const struct tl_setting *row, const void *base, char *value, size_t size);
/* All rows' defaults into base. */
void tl_settings_default(const struct tl_setting *rows, size_t n, void *base);

#endif
