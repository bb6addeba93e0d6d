/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small template language for pages. It has no way to insert a value of a request unescaped.
 *
 *     {{name}}               the value, with & < > " ' escaped
 *     {{#name}}...{{/name}}  what is between them, unless the value is empty
 *     {{^name}}...{{/name}}  what is between them, if the value is empty
 *     {{*name}}...{{/name}}  what is between them, once for each item of a list, which
 *                            stands in no other list
 *     {{>name}}              a source as it is: a script or a style sheet, in an element of its
 *                            own; {{#>name}}...{{/>name}} is a section of it
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

/* Makes the values those of the i-th item of the list with this name. False: it has fewer. */
typedef bool tl_template_item(void *context, size_t name, size_t i);

/* Parses a template with these n names; that of a source begins with ">". The bytes are borrowed,
 * names are not kept. Errors begin with `label`, as in `label:line:column: what`, columns in bytes.
 * NULL on failure; freed with tl_template_free. */
struct tl_template *tl_template_parse(const char *label, const void *bytes, size_t length,
                                      const char *const names[], size_t n, struct tl_error *err);
void tl_template_free(struct tl_template **template);

/* Appends the template with a value for each name, UTF-8, at most INT_MAX bytes; NULL counts as
 * empty. `item` may change them. out->failed when memory ran out. */
void tl_template_render(const struct tl_template *template, const char *const values[],
                        tl_template_item *item, void *context, struct tl_text *out);

#endif
