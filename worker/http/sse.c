/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include <sodium.h>

#include "worker/http/sse.h"

size_t tl_sse_event(char *text, size_t size, const char *event, const char *data, size_t length)
{
    if (length > 0 && data[length - 1] == '\n')
        length--;
    int n = snprintf(text, size, "event: %s\ndata: %.*s\n\n", event, (int)length, data);
    return n > 0 && (size_t)n < size ? (size_t)n : 0;
}

size_t tl_sse_retry(char *text, size_t size, unsigned min_ms, unsigned spread_ms)
{
    int n = snprintf(text, size, "retry: %u\n\n", min_ms + randombytes_uniform(spread_ms));
    return n > 0 && (size_t)n < size ? (size_t)n : 0;
}

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
