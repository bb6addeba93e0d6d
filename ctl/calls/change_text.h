/* SPDX-License-Identifier: Apache-2.0 */
/* What a change has made, as a line of text. */
#ifndef TL_CTL_CALLS_CHANGE_TEXT_H
#define TL_CTL_CALLS_CHANGE_TEXT_H

#include <stdbool.h>

#include <jansson.h>

#include "common/base/error.h"
#include "common/base/text.h"

/* Appends "NAME=VALUE" as people read it: durations and times in words, odd bytes as '?', long
 * values cut. */
void tl_change_value(struct tl_text *out, const char *name, const char *value);
/* Appends " (was VALUE)" and the end of the line; old NULL: it was not set. */
void tl_change_was(struct tl_text *out, const char *name, const char *old);

/* Appends every member: "capacity 10 -> 20, notice (none) -> "soon"". A creation: how many
 * settings. */
void tl_change_describe(struct tl_text *out, const char *what, const json_t *before,
                        const json_t *after);

#endif
