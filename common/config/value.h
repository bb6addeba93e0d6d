/* SPDX-License-Identifier: Apache-2.0 */
/* The value of a setting: from text into its field, and back; its type and limits in words. */
#ifndef TL_CONFIG_VALUE_H
#define TL_CONFIG_VALUE_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/error.h"
#include "common/config/settings.h"
#include "common/config/table.h"

/* Bytes of any setting's canonical text, with the terminating zero. */
#define TL_QUEUE_VALUE_MAX    2048
#define TL_SETTING_BOUNDS_MAX 96 /* bytes of tl_setting_bounds, with the terminating zero */

/* Whether the value is text as people write it, in the file, on a command line or in an admin call,
 * or as the store keeps it. They differ in durations, times, shares and texts: people write a unit
 * ("10m", "80%") and an offset, and a bare number is no time, as nobody sees whether it means
 * seconds; the store has plain milliseconds and per cent, as the functions calculate with them. */
enum tl_setting_form { TL_FORM_FILE, TL_FORM_STORE };

/* "host:port" or "[IPv6 address]:port" into *listen. */
bool tl_listen_parse(const char *value, struct tl_listen *listen);
/* Parses the value and stores it in the field of `base`; on failure nothing is changed and err says
 * what is wrong with it and what the limit is. Items of lists are separated by commas or spaces.
 * The value of a plain text is never part of the message, as it may hold a password. */
bool tl_setting_set(const struct tl_setting *row, void *base, const char *value,
                    enum tl_setting_form form, struct tl_error *err);
/* Sets the text in one language ("*": for everyone) of a setting that has several; "" removes it.
 */
bool tl_setting_set_text(const struct tl_setting *row, void *base, const char *language,
                         const char *text, struct tl_error *err);
/* The row of this path, also in its long form ("capacity.max"), or NULL. For "closed_text.ko" it is
 * that of the texts, and *language becomes "ko"; else NULL. language may be NULL: no such path. */
const struct tl_setting *tl_setting_find(const struct tl_setting *rows, size_t n, const char *path,
                                         const char **language);
/* The field's value as the store keeps it, or as people read it: "10m", "2026-12-01T11:00:00Z",
 * "en: Closed, ko: ...". TL_QUEUE_VALUE_MAX bytes are always enough. */
void tl_setting_get(const struct tl_setting *row, const void *base, enum tl_setting_form form,
                    char *value, size_t size);
/* All rows' defaults into base. */
void tl_settings_default(const struct tl_setting *rows, size_t n, void *base);
/* The number of the lane of this name. False: the queue has none; *lane stays as it is. */
bool tl_lane_find(const struct tl_queue_settings *settings, const char *name, unsigned *lane);
/* Is it written as a list? */
bool tl_setting_is_list(const struct tl_setting *row);

/* The limits in words: "256B to 1MiB", "counter, rate or both". */
void tl_setting_bounds(const struct tl_setting *row, char bounds[TL_SETTING_BOUNDS_MAX]);
/* The type in words: "duration". */
const char *tl_setting_type_name(const struct tl_setting *row);
/* "redis.url" as TELLERLINE_REDIS_URL. */
void tl_setting_env_name(const struct tl_setting *row, char name[TL_SETTING_PATH_MAX]);

#endif
