/* SPDX-License-Identifier: Apache-2.0 */
/* The settings of a queue as JSON, in the shape of the configuration file, and back. */
#ifndef TL_CONTROL_SETTINGS_JSON_H
#define TL_CONTROL_SETTINGS_JSON_H

#include <stdbool.h>

#include <jansson.h>

#include "common/config/read.h"
#include "common/config/settings.h"

/* All settings: durations as "10m", shares as "80%", times in RFC 3339 or null, lanes as a list,
 * texts as an object from languages to texts, `rate.admit` as "rate": {"admit": ...}. NULL: out of
 * memory. */
json_t *tl_settings_to_json(const struct tl_queue_settings *settings);
/* One of them. */
json_t *tl_setting_to_json(const struct tl_setting *row, const struct tl_queue_settings *settings);

/* What a change has in the record, before or after it: an object of texts, those of the store. The
 * settings are written as people do ("10m"), and texts by language and a notice as objects, so that
 * a body can set them again. JSON null for what cannot be read, NULL: out of memory. */
json_t *tl_settings_record_to_json(const char *text);

/* Settings that a body asks for. */
struct tl_settings_wish {
    struct tl_queue_settings settings; /* those that are there; then with what is wished */
    struct tl_yaml_place places[TL_QUEUE_ROWS_MAX]; /* by the rows: with a line what is wished */
    struct tl_mistakes mistakes;                    /* of every member that is refused */
};

/* Reads the object, of the shape of tl_settings_to_json, into wish->settings, which hold those that
 * are there; null asks for the default, and "rate.admit" is a member as well. `whole`: each setting
 * that the object does not name gets its default, except `mode`: only who asks for another mode
 * gets one. Also notes whether all together are refused. False: out of memory. */
bool tl_settings_wish_read(struct tl_settings_wish *wish, const json_t *object, bool whole,
                           struct tl_error *err);
/* The mistakes as [{"name", "detail"}]. NULL: out of memory. */
json_t *tl_settings_wish_errors(const struct tl_settings_wish *wish);

#endif
