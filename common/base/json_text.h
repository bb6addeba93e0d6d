/* SPDX-License-Identifier: Apache-2.0 */
/* Writes one flat JSON object into a buffer of the caller's: no allocation, no tree. Names must
 * need no escaping; values are escaped. UTF-8 goes through as it is. */
#ifndef TL_JSON_TEXT_H
#define TL_JSON_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The most bytes that a text of this many bytes takes, escaped. */
#define TL_JSON_ESCAPED_MAX(length) (6 * (length))

struct tl_json {
    char *text;
    size_t length, size;
    bool failed; /* it did not fit */
};

void tl_json_begin(struct tl_json *json, char *buffer, size_t size);
void tl_json_string(struct tl_json *json, const char *name, const char *value);
/* A value of printable ASCII without quotes and backslashes, such as base64url: it is not looked
 * through. */
void tl_json_plain(struct tl_json *json, const char *name, const char *value);
void tl_json_uint(struct tl_json *json, const char *name, uint64_t value);
void tl_json_bool(struct tl_json *json, const char *name, bool value);
/* Members as another object has them, without its braces. */
void tl_json_members(struct tl_json *json, const char *members, size_t length);
/* An array of strings: open, items, close. */
void tl_json_array(struct tl_json *json, const char *name);
void tl_json_item(struct tl_json *json, const char *value);
void tl_json_array_end(struct tl_json *json);
/* Closes the object and returns its length, or 0 when it did not fit. */
size_t tl_json_end(struct tl_json *json);

#endif
