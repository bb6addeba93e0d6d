/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON view of a place, as clients see it. */
#ifndef TL_VIEW_H
#define TL_VIEW_H

#include <stddef.h>

#include "common/base/json_text.h"
#include "worker/page/view.h"

/* Bytes that are enough for any view, with the longest target_url, the longest notice and a pass.
 */
#define TL_VIEW_MAX 16384

/* Writes the view; returns its length. */
size_t tl_view_write(const struct tl_view *view, char text[TL_VIEW_MAX]);
/* When to ask again: soon near the front, seldom far back, and spread
 * over time. */
unsigned tl_view_poll_after_ms(const struct tl_view *view);
/* A member with this time, Unix time in ms. */
void tl_view_time(struct tl_json *json, const char *name, int64_t ms);
/* The name of the event that tells a place in this state. */
const char *tl_view_event_name(tl_place place, enum tl_line_status status);

#endif
