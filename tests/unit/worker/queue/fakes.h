/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stands in for worker/http in tests of worker/queue: streams that keep what they are sent, and
 * requests that note what becomes of them. The linker takes these symbols instead of the library's.
 * Included by the one file of a test.
 */
#ifndef TL_TEST_FAKES_H
#define TL_TEST_FAKES_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "worker/http/request.h"
#include "worker/http/stream.h"

enum { FAKE_STREAMS = 64, FAKE_TEXT_MAX = 4096 };

struct tl_stream {
    tl_stream_broken *broken;
    void *context;
    bool open;
    bool stuck;  /* takes nothing */
    bool breaks; /* fails with the next send */
    size_t length;
    char text[FAKE_TEXT_MAX]; /* what was sent since it was last read */
};

struct tl_request {
    bool held;
    bool taken_over;
    bool gone; /* there is no socket to take over */
};

/* In the order in which they were opened. */
static struct tl_stream fake_streams[FAKE_STREAMS];
static size_t fake_streams_n;

static inline void fakes_reset(void)
{
    memset(fake_streams, 0, sizeof(fake_streams));
    fake_streams_n = 0;
}

struct tl_stream *tl_stream_open(uv_loop_t *loop, int fd, tl_stream_broken *broken, void *context)
{
    (void)loop;
    (void)fd;
    if (fake_streams_n == FAKE_STREAMS)
        return NULL;
    struct tl_stream *stream = &fake_streams[fake_streams_n++];
    stream->broken = broken;
    stream->context = context;
    stream->open = true;
    return stream;
}

void tl_stream_close(struct tl_stream **stream)
{
    if (*stream != NULL)
        (*stream)->open = false;
    *stream = NULL;
}

bool tl_stream_ready(const struct tl_stream *stream)
{
    return !stream->stuck;
}

bool tl_stream_send(struct tl_stream *stream, const void *bytes, size_t length)
{
    if (stream->breaks || length >= FAKE_TEXT_MAX - stream->length)
        return false;
    memcpy(stream->text + stream->length, bytes, length);
    stream->length += length;
    stream->text[stream->length] = '\0';
    return true;
}

size_t tl_request_share_headers(const struct tl_request *request,
                                struct tl_header headers[TL_SHARE_HEADERS_MAX])
{
    (void)request;
    headers[0] = (struct tl_header){"Access-Control-Allow-Origin", "https://shop.example"};
    return 1;
}

const char *tl_request_id(const struct tl_request *request)
{
    (void)request;
    return "request-1";
}

void tl_request_hold(struct tl_request *request)
{
    request->held = true;
}

int tl_request_take_over(struct tl_request *request)
{
    request->taken_over = true;
    return request->gone ? -1 : 5;
}

#endif
