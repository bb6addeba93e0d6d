/* SPDX-License-Identifier: Apache-2.0 */
/* JSON on standard output. */
#ifndef TL_CTL_SHELL_JSON_H
#define TL_CTL_SHELL_JSON_H

#include <stdbool.h>

#include <jansson.h>

/* Writes the value, indented, with a line end, and releases it. False when it is NULL (out of
 * memory) or cannot be written. */
bool tl_json_write(json_t *value);

/* A member of an object as text; "" when it is none, or there is none. Borrowed. */
const char *tl_json_text(const json_t *object, const char *name);
/* The same as a whole number; 0 when it is none. */
json_int_t tl_json_number(const json_t *object, const char *name);

/* The value as the configuration file writes it: texts without quotes, lists with commas, nothing
 * for null. */
void tl_json_show(const json_t *value, char *text, size_t size);
/* Calls `each` for every member, those of inner objects as "rate.admit". */
void tl_json_flat(const json_t *object,
                  void (*each)(void *context, const char *name, const json_t *value),
                  void *context);

#endif
