/* SPDX-License-Identifier: Apache-2.0 */
/* The settings of a queue as JSON, in the shape of the configuration file, and back. */
#ifndef TL_CONTROL_SETTINGS_JSON_H
#define TL_CONTROL_SETTINGS_JSON_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include "common/config/queue_settings.h"
#include "common/store/queue.h"

/* All settings: durations as "10m", times in RFC 3339 or
 * null, lanes as a list, `rate.admit` as "rate": {"admit": ...}. NULL: out of memory. */
json_t *tl_settings_to_json(const struct tl_queue_settings *settings);

/* What a change has in the record, before or after it: an object of texts, those of the store. The
 * settings are written as people do ("10m"), and a notice is as in tl_notice_value, so that a body
 * can set them again. JSON null for what
 * cannot be read, NULL: out of memory. */
json_t *tl_settings_record_to_json(const char *text);

/* Settings that a body asks for, as names and texts. */
struct tl_settings_wish {
    size_t n;
    struct tl_queue_change *list;       /* in the order of the table: lanes before default_lane */
    char (*values)[TL_QUEUE_VALUE_MAX]; /* a text for each row of the table... */
    bool *given;                        /* ...that is given */
    json_t *errors;                     /* [{"name", "detail"}]: every member that is refused */
    bool fixed;                         /* capacity is a number: there is no capacity.min */
};

/* Reads the object, of the shape of tl_settings_to_json; null asks for the default, and
 * "rate.admit" is a member as well. What is no setting or of another type goes to the errors.
 * `whole`: each setting that the object does not name gets its default, except `mode`: only who
 * asks for another mode gets one. False: out of memory. Free the wish afterwards in any case. */
bool tl_settings_wish_read(struct tl_settings_wish *wish, const json_t *object, bool whole,
                           struct tl_error *err);
/* Makes the settings those that are wished, and notes in the errors which values are refused, and
 * whether all together are. False: out of memory. */
bool tl_settings_wish_try(struct tl_settings_wish *wish, struct tl_queue_settings *settings,
                          struct tl_error *err);
void tl_settings_wish_free(struct tl_settings_wish *wish);

#endif
