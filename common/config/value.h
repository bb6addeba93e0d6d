/* SPDX-License-Identifier: Apache-2.0 */
/* The value of a setting: from text into its field, and back. */
#ifndef TL_CONFIG_VALUE_H
#define TL_CONFIG_VALUE_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/error.h"
#include "common/config/settings.h"
#include "common/config/table.h"

/* Whether the value is text as people write it, in the file, on a command line or in an admin call,
 * or as the store keeps it. They differ in durations and times: people write a unit ("10m") and an
 * offset, and a bare number is an error, as nobody sees whether it means seconds; the store has
 * plain milliseconds and nothing else, as the functions calculate with them. */
enum tl_setting_form { TL_FORM_FILE, TL_FORM_STORE };

/* "host:port" or "[IPv6 address]:port" into *listen. */
bool tl_listen_parse(const char *value, struct tl_listen *listen);
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
