/* SPDX-License-Identifier: Apache-2.0 */
/* What answers in JSON say, for people. */
#ifndef TL_WORDS_JSON_H
#define TL_WORDS_JSON_H

#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "common/base/text.h"

/* A member of an object as text; "" when it is none, or there is none. Borrowed. */
const char *tl_json_text(const json_t *object, const char *name);
/* The same as a whole number; 0 when it is none. */
json_int_t tl_json_number(const json_t *object, const char *name);
/* The same of something that is counted. */
uint64_t tl_json_count(const json_t *object, const char *name);

/* A time in RFC 3339, as the control room answers, as people here read it: local, with the offset
 * from UTC ("2026-12-01T20:00:00+09:00"; "Z" for none), as the configuration takes it, too. Without
 * fractions of a second. What is no time is copied. */
void tl_terminal_time_of(const char *rfc3339, char *text, size_t size);
/* The value as the configuration file writes it: texts without quotes, lists with commas, nothing
 * for null. */
void tl_json_show(const json_t *value, char *text, size_t size);
/* Appends "NAME=VALUE" as people read it. */
void tl_change_value(struct tl_text *out, const char *name, const json_t *value);
/* Appends " (was VALUE)" and the end of the line; old NULL: it was not set. */
void tl_change_was(struct tl_text *out, const json_t *old);
/* What differs, of an entry of the record of changes: "capacity 20 -> 30". Long values are cut.
 * Nothing else is in *out. */
void tl_change_describe(const json_t *change, struct tl_text *out);
/* The same with whole values. */
void tl_change_describe_whole(const json_t *change, struct tl_text *out);

#endif
