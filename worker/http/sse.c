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
