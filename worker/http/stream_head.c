/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "worker/http/sse.h"
#include "worker/http/stream_head.h"

static const char stream_head[] = "HTTP/1.1 200 OK\r\n"
                                  "Content-Type: text/event-stream\r\n"
                                  "Cache-Control: no-store\r\n"
                                  "X-Accel-Buffering: no\r\n"
                                  "X-Content-Type-Options: nosniff\r\n"
                                  "Connection: close\r\n";

size_t tl_stream_head(const struct tl_request *request, unsigned min_ms, unsigned spread_ms,
                      char head[TL_STREAM_HEAD_MAX])
{
    struct tl_header shared[TL_SHARE_HEADERS_MAX];
    size_t n_shared = tl_request_share_headers(request, shared);
    size_t length = (size_t)snprintf(head, TL_STREAM_HEAD_MAX, "%sX-Request-Id: %s\r\n",
                                     stream_head, tl_request_id(request));
    for (size_t i = 0; i < n_shared; i++)
        length += (size_t)snprintf(head + length, TL_STREAM_HEAD_MAX - length, "%s: %s\r\n",
                                   shared[i].name, shared[i].value);
    length += (size_t)snprintf(head + length, TL_STREAM_HEAD_MAX - length, "\r\n");
    return length + tl_sse_retry(head + length, TL_STREAM_HEAD_MAX - length, min_ms, spread_ms);
}
