/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "common/base/clock.h"
#include "common/store/reply.h"
#include "common/store/streams.h"

#define CHANNEL "__redis__:invalidate"

void tl_streams_free(struct tl_streams *streams)
{
    for (size_t i = 0; i < streams->list.n; i++)
        free(tl_streams_at(streams, i));
    tl_named_free(&streams->list);
    tl_args_free(&streams->args);
    tl_args_free(&streams->look);
    tl_redis_free(&streams->listener);
}

/* ---- the list ---- */

struct tl_stream *tl_streams_add(struct tl_streams *streams, const char *key, void *thing)
{
    struct tl_stream *stream = malloc(sizeof(*stream));
    if (stream == NULL || !tl_named_add(&streams->list, key, stream)) {
        free(stream);
        return NULL;
    }
    *stream = (struct tl_stream){.key = key, .thing = thing, .unread = true};
    return stream;
}

void tl_streams_remove(struct tl_streams *streams, const char *key)
{
    free(tl_named_remove(&streams->list, key));
}

struct tl_stream *tl_streams_find(const struct tl_streams *streams, const char *key)
{
    return tl_named_find(&streams->list, key);
}

struct tl_stream *tl_streams_at(const struct tl_streams *streams, size_t i)
{
    return streams->list.all[i].thing;
}

void tl_streams_unread(struct tl_streams *streams)
{
    for (size_t i = 0; i < streams->list.n; i++)
        tl_streams_at(streams, i)->unread = true;
}

/* ---- learning what was written ---- */

/* Opens the second connection, and has the server send there what is written. */
static bool open_listener(struct tl_streams *streams, struct tl_redis *redis, struct tl_error *err)
{
    struct tl_args args = {0};
    tl_redis_free(&streams->listener);
    struct tl_redis *listener = streams->listener = tl_redis_new_beside(redis, err);
    bool ok = listener != NULL && tl_redis_connect(listener, err);
    struct tl_reply *id = ok ? tl_ask(listener, err, "CLIENT", "ID", NULL) : NULL;
    tl_args_strs(&args, "SUBSCRIBE", CHANNEL, NULL);
    ok = id != NULL && tl_redis_do(listener, &args, err);
    tl_args_reset(&args);
    tl_args_strs(&args, "CLIENT", "TRACKING", "ON", "OPTIN", "REDIRECT", NULL);
    tl_args_int(&args, tl_reply_integer(id));
    ok = ok && tl_redis_do(redis, &args, err);
    tl_args_free(&args);
    tl_reply_free(id);
    if (!ok)
        tl_redis_free(&streams->listener);
    streams->epoch = tl_redis_epoch(redis);
    streams->sweep_ms = 0;
    return ok;
}

/* A message is [message, channel, keys], without keys after FLUSHALL. */
static void take(struct tl_streams *streams, const struct tl_reply *message)
{
    const struct tl_reply *keys = tl_reply_at(message, 2);
    if (tl_reply_type(keys) != TL_REPLY_ARRAY)
        tl_streams_unread(streams);
    for (size_t i = 0; i < tl_reply_count(keys); i++) {
        struct tl_stream *stream = tl_streams_find(streams, tl_reply_text(keys, i));
        if (stream != NULL)
            stream->unread = true;
    }
}

/* Waits up to wait_ms until a stream is written. */
static bool listen(struct tl_streams *streams, struct tl_redis *redis, int64_t wait_ms,
                   struct tl_error *err)
{
    bool open = streams->listener != NULL && tl_redis_connected(streams->listener) &&
                streams->epoch == tl_redis_epoch(redis);
    if (!open && !open_listener(streams, redis, err))
        return false;
    int64_t now_ms = tl_clock_ms();
    if (now_ms >= streams->sweep_ms) {
        tl_streams_unread(streams);
        streams->sweep_ms = now_ms + TL_STREAMS_SWEEP_MS;
        wait_ms = 0;
    }
    if (wait_ms > streams->sweep_ms - now_ms)
        wait_ms = streams->sweep_ms - now_ms;
    struct tl_reply *message;
    do {
        if (!tl_redis_await(streams->listener, wait_ms, &message, err))
            return false;
        if (message != NULL)
            take(streams, message);
        tl_reply_free(message);
        wait_ms = 0; /* and what else has come */
    } while (message != NULL);
    return true;
}

/* ---- reading ---- */

static bool is_asked(const struct tl_stream *stream, bool blocking)
{
    return !stream->rests && (blocking || stream->unread);
}

/* Builds the command, and the look at the same streams; returns how many these are. */
static size_t build(struct tl_streams *streams, bool blocking, uint64_t most, int64_t block_ms)
{
    struct tl_args *args = &streams->args;
    size_t n = 0;
    tl_args_reset(args);
    tl_args_reset(&streams->look);
    for (size_t i = 0; streams->command[i] != NULL; i++)
        tl_args_str(args, streams->command[i]);
    tl_args_str(args, "COUNT");
    tl_args_uint(args, most);
    if (blocking && block_ms > 0) {
        tl_args_str(args, "BLOCK");
        tl_args_int(args, block_ms);
    }
    tl_args_str(args, "STREAMS");
    tl_args_str(&streams->look, "EXISTS");
    for (size_t i = 0; i < streams->list.n; i++) {
        const struct tl_stream *stream = tl_streams_at(streams, i);
        if (!is_asked(stream, blocking))
            continue;
        tl_args_str(args, stream->key);
        if (streams->writes)
            tl_args_str(&streams->look, stream->key);
        n++;
    }
    for (size_t i = 0; i < streams->list.n; i++)
        if (is_asked(tl_streams_at(streams, i), blocking))
            tl_args_str(args, tl_streams_at(streams, i)->id);
    return n;
}

/* Sends the command so that the server remembers its streams. */
static struct tl_reply *read_remembered(struct tl_streams *streams, struct tl_redis *redis,
                                        struct tl_error *err)
{
    struct tl_args caching = {0};
    const struct tl_args *const commands[] = {
        &caching, streams->writes ? &streams->look : &streams->args, &streams->args};
    size_t n = streams->writes ? 3 : 2;
    bool ok = true;
    tl_args_strs(&caching, "CLIENT", "CACHING", "YES", NULL);
    for (size_t i = 0; ok && i < n; i++)
        ok = tl_redis_append(redis, commands[i], err);
    tl_args_free(&caching);
    if (!ok) {
        tl_redis_close(redis); /* replies may be due */
        return NULL;
    }
    struct tl_reply *reply = NULL;
    for (size_t i = 0; i < n; i++) {
        tl_reply_free(reply);
        reply = tl_redis_next(redis, ok ? err : NULL);
        ok = ok && reply != NULL;
    }
    if (ok)
        return reply;
    tl_reply_free(reply);
    return NULL;
}

/* The streams asked for have no more entries, but for those that filled the reply. */
static void note_read(struct tl_streams *streams, const struct tl_reply *reply, uint64_t most)
{
    for (size_t i = 0; i < streams->list.n; i++)
        if (!tl_streams_at(streams, i)->rests)
            tl_streams_at(streams, i)->unread = false;
    for (size_t i = 0; i < tl_reply_count(reply); i++) {
        const struct tl_reply *read = tl_reply_at(reply, i);
        struct tl_stream *stream = tl_streams_find(streams, tl_reply_text(read, 0));
        if (stream != NULL)
            stream->unread = tl_reply_count(tl_reply_at(read, 1)) >= most;
    }
}

bool tl_streams_read(struct tl_streams *streams, struct tl_redis *redis, uint64_t most,
                     int64_t block_ms, struct tl_reply **reply, struct tl_error *err)
{
    bool blocking = streams->list.n <= TL_STREAMS_BLOCKING_MAX;
    bool unread = false;
    *reply = NULL;
    for (size_t i = 0; i < streams->list.n; i++)
        unread = unread || is_asked(tl_streams_at(streams, i), false);
    if (!blocking && !listen(streams, redis, unread ? 0 : block_ms, err))
        return false;
    if (build(streams, blocking, most, block_ms) == 0)
        return true;
    *reply = blocking ? tl_redis_call_blocking(redis, &streams->args, block_ms, err)
                      : read_remembered(streams, redis, err);
    if (*reply != NULL && !blocking)
        note_read(streams, *reply, most);
    return *reply != NULL;
}
