/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/grow.h"
#include "common/store/reply.h"
#include "common/store/streams.h"

#define CHANNEL "__redis__:invalidate"

/* In a cluster, after a node has refused: the slot may be on its way to another one. */
enum {
    RETRY_MS = 50,
    LISTEN_AGAIN_MS = 500, /* after a node could not be listened to */
    LOG_EVERY_MS = 60000,
};

static void clear_replies(struct tl_streams *streams)
{
    for (size_t i = 0; i < streams->n_replies; i++)
        tl_reply_free(streams->replies[i]);
    streams->n_replies = 0;
}

static void free_listeners(struct tl_streams *streams)
{
    for (size_t i = 0; i < streams->n_listeners; i++)
        tl_redis_free(&streams->listeners[i].connection);
    free(streams->listeners);
    streams->listeners = NULL;
    streams->n_listeners = 0;
}

void tl_streams_free(struct tl_streams *streams)
{
    for (size_t i = 0; i < streams->list.n; i++)
        free(tl_streams_at(streams, i));
    tl_named_free(&streams->list);
    tl_args_free(&streams->args);
    tl_args_free(&streams->look);
    free_listeners(streams);
    clear_replies(streams);
    free(streams->replies);
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

void tl_streams_fail(struct tl_streams *streams, const struct tl_redis *redis,
                     enum tl_error_kind reason, int64_t retry_ms)
{
    for (size_t i = 0; i < streams->list.n; i++) {
        struct tl_stream *stream = tl_streams_at(streams, i);
        if (stream->redis != redis)
            continue;
        stream->failed = reason;
        stream->retry_ms = retry_ms;
        stream->unread = true;
    }
}

void tl_streams_fail_one(struct tl_stream *stream, enum tl_error_kind reason)
{
    stream->failed = reason;
    stream->retry_ms = tl_clock_ms() + RETRY_MS;
    stream->unread = true;
}

/* ---- learning what was written ---- */

/* Does the server remember what this connection reads, and tell it over the second one? */
static bool is_listening(const struct tl_listener *listener, const struct tl_redis *redis)
{
    return listener->connection != NULL && tl_redis_connected(listener->connection) &&
           listener->epoch == tl_redis_epoch(redis);
}

/* Opens the second connection, unless it is open, and has the server send there what is written. */
static bool open_listener(struct tl_listener *listener, struct tl_redis *redis,
                          struct tl_error *err)
{
    struct tl_args args = {0};
    if (is_listening(listener, redis))
        return true;
    tl_redis_free(&listener->connection);
    struct tl_redis *connection = listener->connection = tl_redis_new_beside(redis, err);
    bool ok = connection != NULL && tl_redis_connect(connection, err);
    struct tl_reply *id = ok ? tl_ask(connection, err, "CLIENT", "ID", NULL) : NULL;
    tl_args_strs(&args, "SUBSCRIBE", CHANNEL, NULL);
    ok = id != NULL && tl_redis_do(connection, &args, err);
    tl_args_reset(&args);
    tl_args_strs(&args, "CLIENT", "TRACKING", "ON", "OPTIN", "REDIRECT", NULL);
    tl_args_int(&args, tl_reply_integer(id));
    ok = ok && tl_redis_do(redis, &args, err);
    tl_args_free(&args);
    tl_reply_free(id);
    if (!ok)
        tl_redis_free(&listener->connection);
    listener->epoch = tl_redis_epoch(redis);
    listener->sweep_ms = 0;
    listener->asked = false;
    return ok;
}

/* A message is [message, channel, keys], without keys after FLUSHALL; or [pong, ""]. */
static void take(struct tl_streams *streams, struct tl_listener *listener,
                 const struct tl_reply *message)
{
    const struct tl_reply *keys = tl_reply_at(message, 2);
    const bool pong = strcmp(tl_reply_text(message, 0), "pong") == 0;
    listener->asked = listener->asked && !pong;
    if (!pong && tl_reply_type(keys) != TL_REPLY_ARRAY)
        tl_streams_unread(streams);
    for (size_t i = 0; i < tl_reply_count(keys); i++) {
        struct tl_stream *stream = tl_streams_find(streams, tl_reply_text(keys, i));
        if (stream != NULL)
            stream->unread = true;
    }
}

/* Takes the messages that come until then. */
static bool take_all(struct tl_streams *streams, struct tl_listener *listener, int64_t wait_ms,
                     struct tl_error *err)
{
    struct tl_reply *message;
    do {
        if (!tl_redis_await(listener->connection, wait_ms, &message, err))
            return false;
        if (message != NULL)
            take(streams, listener, message);
        tl_reply_free(message);
        wait_ms = 0; /* and what else has come */
    } while (message != NULL);
    return true;
}

/* Waits up to wait_ms until a stream is written. */
static bool listen(struct tl_streams *streams, struct tl_redis *redis, int64_t wait_ms,
                   struct tl_error *err)
{
    if (streams->listeners == NULL) {
        streams->listeners = calloc(1, sizeof(*streams->listeners));
        if (streams->listeners == NULL)
            return tl_error_set(err, TL_ERR_NOMEM, "no memory to listen to the store");
        streams->n_listeners = 1;
    }
    struct tl_listener *listener = streams->listeners;
    if (!open_listener(listener, redis, err))
        return false;
    int64_t now_ms = tl_clock_ms();
    if (now_ms >= listener->sweep_ms) {
        tl_streams_unread(streams);
        listener->sweep_ms = now_ms + TL_STREAMS_SWEEP_MS;
        wait_ms = 0;
    }
    if (wait_ms > listener->sweep_ms - now_ms)
        wait_ms = listener->sweep_ms - now_ms;
    return take_all(streams, listener, wait_ms, err);
}

/* ---- the same in a cluster ---- */

/* One for each node, without a connection at first, and the nodes of the streams. */
static bool look_up(struct tl_streams *streams, struct tl_store *store)
{
    const uint64_t epoch = tl_store_epoch(store);
    const bool changed = epoch != streams->epoch || streams->listeners == NULL;
    const size_t n = tl_store_nodes(store);
    const size_t n_before = streams->listeners != NULL ? streams->n_listeners : 0;
    struct tl_listener *listeners = changed ? calloc(n > 0 ? n : 1, sizeof(*listeners)) : NULL;
    if (changed && listeners == NULL)
        return false;
    for (size_t i = 0; changed && i < n; i++) {
        listeners[i].redis = tl_store_node(store, i);
        for (size_t k = 0; k < n_before; k++) {
            struct tl_listener *old = &streams->listeners[k];
            if (old->redis != listeners[i].redis)
                continue;
            listeners[i] = *old;
            old->connection = NULL;
        }
    }
    if (changed) {
        free_listeners(streams);
        streams->listeners = listeners;
        streams->n_listeners = n;
        streams->epoch = epoch;
    }
    for (size_t i = 0; i < streams->list.n; i++) {
        struct tl_stream *stream = tl_streams_at(streams, i);
        struct tl_redis *redis = stream->redis;
        if (changed || redis == NULL)
            stream->redis = tl_store_of_key(store, stream->key);
        stream->unread = stream->unread || redis != stream->redis;
    }
    return true;
}

static bool is_readable(const struct tl_stream *stream, const struct tl_redis *redis)
{
    return stream->redis == redis && !stream->rests && stream->failed == TL_OK;
}

/* Asks a node for an answer over the connection on which it tells of writes, or closes the
 * connection: the last answer has not come. After a long turn of this program it may wait unread.
 */
static void ask(struct tl_streams *streams, struct tl_listener *listener, int64_t now_ms)
{
    struct tl_args ping = {0};
    if (!is_listening(listener, listener->redis) || now_ms < listener->ping_ms ||
        !take_all(streams, listener, 0, NULL))
        return;
    tl_args_str(&ping, "PING");
    if (listener->asked || !tl_redis_append(listener->connection, &ping, NULL) ||
        !tl_redis_flush(listener->connection, NULL))
        tl_redis_close(listener->connection);
    tl_args_free(&ping);
    listener->asked = true;
    listener->ping_ms = now_ms + TL_STREAMS_NODE_PING_MS;
}

/* Prepares to listen to a node. How long may the wait last? */
static int64_t prepare(struct tl_streams *streams, struct tl_listener *listener, int64_t now_ms,
                       int64_t wait_ms)
{
    size_t n = 0;
    bool unread = false;
    for (size_t i = 0; i < streams->list.n; i++)
        n += is_readable(tl_streams_at(streams, i), listener->redis);
    if (n == 0 || !tl_redis_connected(listener->redis))
        return wait_ms;
    struct tl_error problem = {0};
    unsigned suppressed;
    ask(streams, listener, now_ms);
    if (!open_listener(listener, listener->redis, &problem)) {
        tl_streams_fail(streams, listener->redis, problem.kind, now_ms + LISTEN_AGAIN_MS);
        if (tl_log_allow(&streams->limit, now_ms, LOG_EVERY_MS, &suppressed))
            tl_log(TL_LOG_WARN, &(struct tl_log_fields){.error = &problem},
                   "%s cannot be listened to: its queues are not read; trying again",
                   tl_redis_address(listener->redis));
        return wait_ms < LISTEN_AGAIN_MS ? wait_ms : LISTEN_AGAIN_MS;
    }
    const bool sweeps = now_ms >= listener->sweep_ms;
    if (sweeps)
        listener->sweep_ms = now_ms + TL_STREAMS_NODE_SWEEP_MS;
    for (size_t i = 0; i < streams->list.n; i++) {
        struct tl_stream *stream = tl_streams_at(streams, i);
        stream->unread = stream->unread || (sweeps && stream->redis == listener->redis);
        unread = unread || (stream->unread && is_readable(stream, listener->redis));
    }
    return unread ? 0 : wait_ms;
}

void tl_streams_wait(struct tl_streams *streams, struct tl_store *store, int64_t block_ms)
{
    const int64_t now_ms = tl_clock_ms();
    struct tl_redis *connections[TL_STORE_NODES_MAX];
    if (!look_up(streams, store))
        return; /* out of memory: what is known goes on */
    for (size_t i = 0; i < streams->list.n; i++) {
        struct tl_stream *stream = tl_streams_at(streams, i);
        if (now_ms >= stream->retry_ms)
            stream->failed = TL_OK;
        else if (stream->failed != TL_OK && block_ms > stream->retry_ms - now_ms)
            block_ms = stream->retry_ms - now_ms;
    }
    for (size_t i = 0; i < streams->n_listeners; i++) {
        block_ms = prepare(streams, &streams->listeners[i], now_ms, block_ms);
        connections[i] = streams->listeners[i].connection;
    }
    tl_redis_await_any(connections, streams->n_listeners, block_ms);
    for (size_t i = 0; i < streams->n_listeners; i++)
        if (connections[i] != NULL && tl_redis_connected(connections[i]))
            (void)take_all(streams, &streams->listeners[i], 0, NULL); /* a closed one is reopened */
}

/* ---- reading ---- */

static bool is_asked(const struct tl_stream *stream, bool blocking)
{
    return !stream->rests && (blocking || stream->unread);
}

/* Builds the command, and the look at the same streams: all that are asked for, or only this one;
 * returns how many these are. */
static size_t build(struct tl_streams *streams, const struct tl_stream *only, bool blocking,
                    uint64_t most, int64_t block_ms)
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
    if (only != NULL) {
        tl_args_strs(args, only->key, only->id, NULL);
        tl_args_str(&streams->look, only->key);
        return 1;
    }
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

/* Appends the command so that the server remembers its streams. */
static bool append_remembered(struct tl_streams *streams, struct tl_redis *redis,
                              struct tl_error *err)
{
    struct tl_args caching = {0};
    tl_args_strs(&caching, "CLIENT", "CACHING", "YES", NULL);
    bool ok = tl_redis_append(redis, &caching, err) &&
              (!streams->writes || tl_redis_append(redis, &streams->look, err)) &&
              tl_redis_append(redis, &streams->args, err);
    tl_args_free(&caching);
    if (!ok)
        tl_redis_close(redis); /* replies may be due */
    return ok;
}

/* Receives what such a command read; NULL with err when one of its parts was refused. */
static struct tl_reply *next_remembered(const struct tl_streams *streams, struct tl_redis *redis,
                                        struct tl_error *err)
{
    size_t n = streams->writes ? 3 : 2;
    bool ok = true;
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
    for (size_t i = 0; i < tl_reply_count(reply); i++) {
        const struct tl_reply *read = tl_reply_at(reply, i);
        struct tl_stream *stream = tl_streams_find(streams, tl_reply_text(read, 0));
        if (stream != NULL)
            stream->unread = tl_reply_count(tl_reply_at(read, 1)) >= most;
    }
}

static bool keep_reply(struct tl_streams *streams, struct tl_reply *reply, struct tl_error *err)
{
    struct tl_reply **replies = tl_grow(streams->replies, &streams->replies_capacity,
                                        streams->n_replies + 1, sizeof(struct tl_reply *));
    if (replies == NULL) {
        tl_reply_free(reply);
        return tl_error_set(err, TL_ERR_NOMEM, "no memory for what was read");
    }
    streams->replies = replies;
    streams->replies[streams->n_replies++] = reply;
    return true;
}

/* Reads the streams of a node that may have entries, each by a command of its own. */
static bool read_node(struct tl_streams *streams, struct tl_redis *redis, uint64_t most,
                      struct tl_error *err)
{
    const size_t n = streams->list.n;
    size_t sent = 0, at = 0;
    while (at < streams->n_listeners && streams->listeners[at].redis != redis)
        at++;
    /* Else the node would not tell of what is written next. */
    bool ok = at < streams->n_listeners && is_listening(&streams->listeners[at], redis);
    if (!ok)
        return true;
    for (; ok && sent < n; sent++) {
        struct tl_stream *stream = tl_streams_at(streams, sent);
        if (!is_readable(stream, redis) || !stream->unread)
            continue;
        (void)build(streams, stream, false, most, 0);
        ok = append_remembered(streams, redis, err);
    }
    for (size_t i = 0; ok && i < n; i++) {
        struct tl_stream *stream = tl_streams_at(streams, i);
        struct tl_error problem = {0};
        if (!is_readable(stream, redis) || !stream->unread)
            continue;
        struct tl_reply *reply = next_remembered(streams, redis, &problem);
        if (reply != NULL) {
            stream->unread = false;
            note_read(streams, reply, most);
            ok = keep_reply(streams, reply, err);
            if (!ok)
                tl_redis_close(redis); /* replies are due */
            continue;
        }
        tl_streams_fail_one(stream, problem.kind);
        ok = tl_redis_connected(redis);
        if (!ok && err != NULL)
            *err = problem;
    }
    return ok;
}

bool tl_streams_read(struct tl_streams *streams, struct tl_redis *redis, uint64_t most,
                     int64_t block_ms, struct tl_error *err)
{
    bool blocking = streams->list.n <= TL_STREAMS_BLOCKING_MAX;
    bool unread = false;
    clear_replies(streams);
    if (tl_redis_is_node(redis))
        return read_node(streams, redis, most, err);
    for (size_t i = 0; i < streams->list.n; i++)
        unread = unread || is_asked(tl_streams_at(streams, i), false);
    if (!blocking && !listen(streams, redis, unread ? 0 : block_ms, err))
        return false;
    if (build(streams, NULL, blocking, most, block_ms) == 0)
        return true;
    struct tl_reply *reply = NULL;
    if (blocking)
        reply = tl_redis_call_blocking(redis, &streams->args, block_ms, err);
    else if (append_remembered(streams, redis, err))
        reply = next_remembered(streams, redis, err);
    if (reply == NULL)
        return false;
    for (size_t i = 0; !blocking && i < streams->list.n; i++)
        if (!tl_streams_at(streams, i)->rests)
            tl_streams_at(streams, i)->unread = false;
    if (!blocking)
        note_read(streams, reply, most);
    return keep_reply(streams, reply, err);
}

const struct tl_reply *tl_streams_next(const struct tl_streams *streams, size_t *i)
{
    size_t left = *i;
    for (size_t k = 0; k < streams->n_replies; k++) {
        size_t n = tl_reply_count(streams->replies[k]);
        if (left < n) {
            ++*i;
            return tl_reply_at(streams->replies[k], left);
        }
        left -= n;
    }
    return NULL;
}
