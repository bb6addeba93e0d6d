/* SPDX-License-Identifier: Apache-2.0 */
/* The text of an event stream: its head, and server-sent events (HTML Standard, 9.2). */
#ifndef TL_SSE_H
#define TL_SSE_H

#include <stddef.h>

#include "worker/http/request.h"

#define TL_STREAM_HEAD_MAX 2048 /* bytes, with the longest origin */

/* Writes one event; data is a single line, a newline at its end is dropped. Returns the length, or
 * 0 when it does not fit. */
size_t tl_sse_event(char *text, size_t size, const char *event, const char *data, size_t length);
/* Writes how long the client is to wait before it reconnects: min_ms, and up to spread_ms more at
 * random, so that not all come back at once. Returns the length. */
size_t tl_sse_retry(char *text, size_t size, unsigned min_ms, unsigned spread_ms);
/* Writes the answer's head, and tl_sse_retry. Returns its length. */
size_t tl_stream_head(const struct tl_request *request, unsigned min_ms, unsigned spread_ms,
                      char head[TL_STREAM_HEAD_MAX]);

#endif
