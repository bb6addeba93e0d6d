/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small template language for pages. It has no way to insert a value of a request unescaped.
 *
 *     {{name}}               the value, with & < > " ' escaped
 *     {{#name}}...{{/name}}  what is between them, unless the value is empty
 *     {{^name}}...{{/name}}  what is between them, if the value is empty
 *     {{*name}}...{{/name}}  what is between them, once for each item of a list, which
 *                            stands in no other list
 *     {{>name}}              a source as it is: a script or a style sheet, in an element of its own
 *
 * A value may stand only where escaping makes it harmless: in text and in quoted attributes. In the
 * unquoted part of a tag, in comments, scripts and styles it is refused. A source may stand only in
 * a script or a style. A section begins and ends in the same part of the HTML. All of this is
 * checked when the template is parsed, so rendering fails only when memory runs out.
 */
#ifndef TL_TEMPLATE_H
#define TL_TEMPLATE_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/error.h"
#include "common/base/text.h"

#define TL_TEMPLATE_MAX   ((size_t)64 * 1024) /* bytes */
#define TL_TEMPLATE_DEPTH 16                  /* nested sections */

struct tl_template;

/* The number (>= 0) of a name, or -1 when there is no such name. name is length bytes. `source`: of
 * a source; no name is that of a value and of a source. */
typedef int tl_template_find(const void *context, const char *name, size_t length, bool source);
/* The value of a number, UTF-8, at most INT_MAX bytes; NULL counts as empty. */
typedef const char *tl_template_value(const void *context, int number);
/* Makes the values those of the i-th item of the list with this number. False: it has fewer. */
typedef bool tl_template_item(void *context, int number, size_t i);

/* Parses a template; the bytes are copied. Errors begin with `label`, as in
 * `label:line:column: what`, columns in bytes. NULL on failure; freed with tl_template_free. */
struct tl_template *tl_template_parse(const char *label, const void *bytes, size_t length,
                                      tl_template_find *find, const void *context,
                                      struct tl_error *err);
void tl_template_free(struct tl_template **template);

/* Appends the template with its values. out->failed when memory ran out. */
void tl_template_render(const struct tl_template *template, tl_template_value *value,
                        tl_template_item *item, void *context, struct tl_text *out);

#endif
