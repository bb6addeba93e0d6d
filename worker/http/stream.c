/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "worker/http/stream.h"

/* What the kernel keeps for a reader who does not read (it doubles the figure): some twenty events.
 * Left to itself it keeps up to 4 MB of them, all outdated. */
enum { SEND_BUFFER = 8192 };

struct tl_stream {
    uv_poll_t poll;
    int fd;
    bool broken;
    tl_stream_broken *on_broken;
    void *context;
    char *unsent; /* NULL when everything is sent */
    size_t unsent_length, unsent_from;
};

static void watch(struct tl_stream *stream);

static void on_closed(uv_handle_t *handle)
{
    struct tl_stream *stream = uv_handle_get_data(handle);
    close(stream->fd);
    free(stream->unsent);
    free(stream);
}

/* Hands over what was kept. False when the connection is broken. */
static bool send_kept(struct tl_stream *stream)
{
    while (stream->unsent != NULL) {
        ssize_t n = send(stream->fd, stream->unsent + stream->unsent_from,
                         stream->unsent_length - stream->unsent_from, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN;
        stream->unsent_from += (size_t)n;
        if (stream->unsent_from < stream->unsent_length)
            continue;
        free(stream->unsent);
        stream->unsent = NULL;
    }
    return true;
}

static void on_event(uv_poll_t *poll, int status, int events)
{
    struct tl_stream *stream = poll->data;
    bool ok = status == 0 && (events & UV_DISCONNECT) == 0;
    if (ok && (events & UV_READABLE) != 0) {
        /* A reader of events has nothing to say: what it sends is thrown away, its end is noticed.
         */
        char bytes[512];
        ssize_t n = recv(stream->fd, bytes, sizeof(bytes), MSG_DONTWAIT);
        ok = n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
    }
    if (ok && (events & UV_WRITABLE) != 0) {
        ok = send_kept(stream);
        if (ok && stream->unsent == NULL)
            watch(stream);
    }
    if (ok || stream->broken)
        return;
    stream->broken = true;
    uv_poll_stop(&stream->poll);
    stream->on_broken(stream->context);
}

static void watch(struct tl_stream *stream)
{
    int events = UV_READABLE | UV_DISCONNECT | (stream->unsent != NULL ? UV_WRITABLE : 0);
    if (uv_poll_start(&stream->poll, events, on_event) != 0)
        stream->broken = true; /* the next send says so */
}

struct tl_stream *tl_stream_open(uv_loop_t *loop, int fd, tl_stream_broken *broken, void *context)
{
    struct tl_stream *stream = calloc(1, sizeof(*stream));
    if (stream == NULL || uv_poll_init(loop, &stream->poll, fd) != 0) {
        close(fd);
        free(stream);
        return NULL;
    }
    /* Both only make it better: without them the stream works as well. */
    int size = SEND_BUFFER;
    int on = 1; /* an event does not wait until the one before was acknowledged */
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    stream->fd = fd;
    stream->on_broken = broken;
    stream->context = context;
    uv_handle_set_data((uv_handle_t *)&stream->poll, stream);
    watch(stream);
    return stream;
}

void tl_stream_close(struct tl_stream **stream)
{
    if (*stream == NULL)
        return;
    uv_close((uv_handle_t *)&(*stream)->poll, on_closed);
    *stream = NULL;
}

bool tl_stream_ready(const struct tl_stream *stream)
{
    return stream->unsent == NULL;
}

bool tl_stream_send(struct tl_stream *stream, const void *bytes, size_t length)
{
    if (stream->broken)
        return false;
    ssize_t n;
    do
        n = send(stream->fd, bytes, length, MSG_DONTWAIT | MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    if (n < 0 && errno != EAGAIN)
        return false;
    size_t sent = n > 0 ? (size_t)n : 0;
    if (sent == length)
        return true;
    stream->unsent = malloc(length - sent);
    if (stream->unsent == NULL)
        return false;
    memcpy(stream->unsent, (const char *)bytes + sent, length - sent);
    stream->unsent_length = length - sent;
    stream->unsent_from = 0;
    watch(stream);
    return true;
}
