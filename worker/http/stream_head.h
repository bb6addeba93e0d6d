/* SPDX-License-Identifier: Apache-2.0 */
/* What is written to an event stream before its first event. */
#ifndef TL_STREAM_HEAD_H
#define TL_STREAM_HEAD_H

#include <stddef.h>

#include "worker/http/request.h"

#define TL_STREAM_HEAD_MAX 2048 /* bytes, with the longest origin */

/* Writes the answer's head, and after how long the reader connects again: at least min_ms, plus up
 * to spread_ms at random. Returns its length. */
size_t tl_stream_head(const struct tl_request *request, unsigned min_ms, unsigned spread_ms,
                      char head[TL_STREAM_HEAD_MAX]);

#endif
