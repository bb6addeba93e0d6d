/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "worker/admin/stream.h"

enum {
    BLOCK = 16 * 1024, /* bytes read at once */
    LOW = 64 * 1024,   /* with less in the buffer, the writer is asked for more */
};

struct tl_admin_stream {
    pthread_mutex_t mutex;
    struct tl_admin_stream_writer writer;
    struct MHD_Connection *connection;
    bool suspended;
    char *bytes;
    size_t begin, end, size; /* unread: bytes[begin..end) */
    bool ended, broken, closed;
    unsigned holders; /* the writer, and the response */
};

struct tl_admin_stream *tl_admin_stream_new(const struct tl_admin_stream_writer *writer)
{
    struct tl_admin_stream *stream = calloc(1, sizeof(*stream));
    if (stream == NULL || pthread_mutex_init(&stream->mutex, NULL) != 0) {
        free(stream);
        return NULL;
    }
    stream->writer = *writer;
    stream->holders = 2;
    return stream;
}

static void let_go(struct tl_admin_stream *stream)
{
    pthread_mutex_lock(&stream->mutex);
    bool last = --stream->holders == 0;
    pthread_mutex_unlock(&stream->mutex);
    if (!last)
        return;
    pthread_mutex_destroy(&stream->mutex);
    free(stream->bytes);
    free(stream);
}

void tl_admin_stream_release(struct tl_admin_stream **stream)
{
    if (*stream != NULL)
        let_go(*stream);
    *stream = NULL;
}

/* ---- the writer's side ---- */

/* With the lock held. */
static void wake(struct tl_admin_stream *stream)
{
    if (stream->suspended)
        MHD_resume_connection(stream->connection);
    stream->suspended = false;
}

static bool make_room(struct tl_admin_stream *stream, size_t length)
{
    size_t left = stream->end - stream->begin;
    if (stream->begin > 0)
        memmove(stream->bytes, stream->bytes + stream->begin, left);
    stream->begin = 0;
    stream->end = left;
    if (left + length <= stream->size)
        return true;
    char *bytes = realloc(stream->bytes, left + length);
    if (bytes == NULL)
        return false;
    stream->bytes = bytes;
    stream->size = left + length;
    return true;
}

bool tl_admin_stream_write(struct tl_admin_stream *stream, const char *bytes, size_t length)
{
    pthread_mutex_lock(&stream->mutex);
    bool open = !stream->ended && !stream->closed && length > 0;
    bool ok = !open || make_room(stream, length);
    if (open && ok) {
        memcpy(stream->bytes + stream->end, bytes, length);
        stream->end += length;
    } else if (!ok) {
        stream->ended = stream->broken = true;
    }
    if (open)
        wake(stream);
    pthread_mutex_unlock(&stream->mutex);
    return ok;
}

void tl_admin_stream_end(struct tl_admin_stream *stream, bool broken)
{
    pthread_mutex_lock(&stream->mutex);
    stream->broken = stream->broken || (broken && !stream->ended);
    stream->ended = true;
    wake(stream);
    pthread_mutex_unlock(&stream->mutex);
}

size_t tl_admin_stream_left(struct tl_admin_stream *stream)
{
    pthread_mutex_lock(&stream->mutex);
    size_t left = stream->end - stream->begin;
    pthread_mutex_unlock(&stream->mutex);
    return left;
}

/* ---- the listener's side ---- */

static ssize_t read_some(void *context, uint64_t position, char *out, size_t size)
{
    struct tl_admin_stream *stream = context;
    ssize_t result;
    (void)position;
    pthread_mutex_lock(&stream->mutex);
    size_t left = stream->end - stream->begin;
    if (left > 0) {
        size_t n = left < size ? left : size;
        memcpy(out, stream->bytes + stream->begin, n);
        stream->begin += n;
        left -= n;
        result = (ssize_t)n;
    } else if (stream->ended) {
        result =
            stream->broken ? MHD_CONTENT_READER_END_WITH_ERROR : MHD_CONTENT_READER_END_OF_STREAM;
    } else {
        stream->suspended = true;
        MHD_suspend_connection(stream->connection);
        result = 0;
    }
    bool drained = left < LOW && !stream->ended && stream->writer.drained != NULL;
    pthread_mutex_unlock(&stream->mutex);
    if (drained)
        stream->writer.drained(stream->writer.context);
    return result;
}

static void close_it(void *context)
{
    struct tl_admin_stream *stream = context;
    pthread_mutex_lock(&stream->mutex);
    stream->closed = true;
    pthread_mutex_unlock(&stream->mutex);
    stream->writer.closed(stream->writer.context);
    let_go(stream);
}

struct MHD_Response *tl_admin_stream_response(struct tl_admin_stream *stream,
                                              struct MHD_Connection *connection)
{
    stream->connection = connection;
    struct MHD_Response *response =
        MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK, read_some, stream, close_it);
    if (response == NULL)
        close_it(stream);
    return response;
}

void tl_admin_stream_abandon(struct tl_admin_stream **stream)
{
    if (*stream != NULL)
        close_it(*stream);
    *stream = NULL;
}
