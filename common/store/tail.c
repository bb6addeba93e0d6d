/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/store/library.h"
#include "common/store/reply.h"
#include "common/store/streams.h"
#include "common/store/tail.h"

/* Entries taken from one stream at a time, so that one busy queue does not starve the others. */
#define ENTRIES_PER_READ 500

/* In a cluster, after the gate has refused what a node read: asking may take it a second, and the
 * other nodes wait meanwhile. */
#define GATE_PAUSE_MS 3000

/* The things of the streams are the keys of their queues. One rests when the handler returned
 * false. */
struct tl_tail {
    tl_tail_handler *handler;
    void *context;
    tl_tail_gate *gate; /* NULL: none */
    void *gate_context;
    struct tl_streams streams;
};

static const char *const command[] = {"XREAD", NULL};

static struct tl_stream *find(const struct tl_tail *tail, const struct tl_keys *keys)
{
    return tl_streams_find(&tail->streams, keys->names[TL_KEY_EVENTS]);
}

struct tl_tail *tl_tail_new(tl_tail_handler *handler, void *context)
{
    struct tl_tail *tail = calloc(1, sizeof(*tail));
    if (tail == NULL)
        return NULL;
    tail->handler = handler;
    tail->context = context;
    tail->streams.command = command;
    return tail;
}

void tl_tail_free(struct tl_tail **tail)
{
    if (*tail == NULL)
        return;
    tl_streams_free(&(*tail)->streams);
    free(*tail);
    *tail = NULL;
}

bool tl_tail_follows(const struct tl_tail *tail, const struct tl_keys *keys)
{
    const struct tl_stream *stream = find(tail, keys);
    return stream != NULL && !stream->rests;
}

size_t tl_tail_count(const struct tl_tail *tail)
{
    return tail->streams.list.n;
}

bool tl_tail_head(struct tl_redis *redis, const struct tl_keys *keys, struct tl_tail_head *head,
                  struct tl_error *err)
{
    struct tl_reply *reply = tl_call_read(redis, TL_FN_HEAD, keys, err);
    if (reply == NULL)
        return false;
    head->generation = tl_reply_number(reply, TL_HEAD_GENERATION);
    head->event = tl_reply_number(reply, TL_HEAD_EVENT);
    head->seq = tl_reply_number(reply, TL_HEAD_SEQ);
    snprintf(head->id, sizeof(head->id), "%s", tl_reply_text(reply, TL_HEAD_ID));
    head->base_seq = tl_reply_number(reply, TL_HEAD_BASE_SEQ);
    head->found_seq = tl_reply_number(reply, TL_HEAD_FOUND_SEQ);
    head->turns.event = head->event;
    snprintf(head->turns.field, sizeof(head->turns.field), "%s",
             tl_reply_text(reply, TL_HEAD_TURNS));
    tl_reply_free(reply);
    return true;
}

void tl_tail_set_gate(struct tl_tail *tail, tl_tail_gate *gate, void *context)
{
    tail->gate = gate;
    tail->gate_context = context;
}

bool tl_tail_follow(struct tl_tail *tail, const struct tl_keys *keys,
                    const struct tl_tail_head *head, struct tl_error *err)
{
    struct tl_stream *stream = find(tail, keys);
    if (stream == NULL)
        stream = tl_streams_add(&tail->streams, keys->names[TL_KEY_EVENTS], NULL);
    if (stream == NULL)
        return tl_error_set(err, TL_ERR_NOMEM, "no memory to follow queue %s", keys->queue);
    stream->thing = (void *)(uintptr_t)keys; /* is not written to */
    stream->rests = false;
    stream->unread = true;
    snprintf(stream->id, sizeof(stream->id), "%s", head->id);
    return true;
}

void tl_tail_forget(struct tl_tail *tail, const struct tl_keys *keys)
{
    tl_streams_remove(&tail->streams, keys->names[TL_KEY_EVENTS]);
}

/* ---- reading ---- */

/* Passes the entries of one stream to the handler: [key, [[id, [field, value...]]...]]. */
static size_t deliver(struct tl_tail *tail, const struct tl_reply *read)
{
    struct tl_stream *stream = tl_streams_find(&tail->streams, tl_reply_text(read, 0));
    if (stream == NULL)
        return 0;
    const struct tl_reply *entries = tl_reply_at(read, 1);
    size_t n = tl_reply_count(entries);
    for (size_t i = 0; i < n && !stream->rests; i++) {
        const struct tl_reply *entry = tl_reply_at(entries, i);
        size_t length;
        const char *payload = tl_reply_string(tl_reply_at(tl_reply_at(entry, 1), 1), &length);
        snprintf(stream->id, sizeof(stream->id), "%s", tl_reply_text(entry, 0));
        stream->rests = !tail->handler(tail->context, stream->thing, payload, length);
    }
    return n;
}

/* Stops the queue if its key is no stream. */
static bool stop_wrong_type(struct tl_stream *stream, struct tl_redis *redis)
{
    struct tl_reply *reply = tl_ask(redis, NULL, "TYPE", stream->key, NULL);
    const char *type = tl_reply_string(reply, NULL);
    stream->rests = reply != NULL && strcmp(type, "stream") != 0 && strcmp(type, "none") != 0;
    tl_reply_free(reply);
    return stream->rests;
}

/* Stops the queues whose key is no stream. False when there is none. */
static bool stop_wrong_types(struct tl_tail *tail, struct tl_redis *redis)
{
    bool found = false;
    for (size_t i = 0; i < tail->streams.list.n; i++) {
        struct tl_stream *stream = tl_streams_at(&tail->streams, i);
        found = (!stream->rests && stop_wrong_type(stream, redis)) || found;
    }
    return found;
}

/* The same for those that a node refused to read; others are read again. */
static void stop_refused(struct tl_tail *tail)
{
    for (size_t i = 0; i < tail->streams.list.n; i++) {
        struct tl_stream *stream = tl_streams_at(&tail->streams, i);
        if (!stream->rests && stream->failed == TL_ERR_STORE)
            (void)stop_wrong_type(stream, stream->redis);
    }
}

/* The stream of something that was read. */
static struct tl_stream *stream_of(const struct tl_tail *tail, const struct tl_reply *read)
{
    return tl_streams_find(&tail->streams, tl_reply_text(read, 0));
}

/* Passes the gate with one of the queues that were read. One whose slot is on its way is read again
 * later. */
static bool pass_gate(struct tl_tail *tail, struct tl_redis *redis, struct tl_error *err)
{
    size_t at = 0;
    const struct tl_reply *read;
    while (tail->gate != NULL && (read = tl_streams_next(&tail->streams, &at)) != NULL) {
        struct tl_stream *stream = stream_of(tail, read);
        struct tl_error problem = {0};
        if (stream == NULL)
            continue;
        if (tail->gate(tail->gate_context, redis, stream->thing, &problem))
            return true;
        if (problem.kind != TL_ERR_MOVED) {
            const int64_t retry_ms = tl_clock_ms() + GATE_PAUSE_MS;
            tl_streams_unread(&tail->streams);
            tl_streams_fail(&tail->streams, redis, problem.kind, retry_ms);
            if (err != NULL)
                *err = problem;
            return false;
        }
        tl_streams_fail_one(stream, problem.kind);
    }
    return true;
}

/* Passes on what was read. */
static bool take(struct tl_tail *tail, struct tl_redis *redis, size_t *entries,
                 struct tl_error *err)
{
    size_t at = 0;
    const struct tl_reply *read;
    if (!pass_gate(tail, redis, err))
        return false;
    while ((read = tl_streams_next(&tail->streams, &at)) != NULL) {
        const struct tl_stream *stream = stream_of(tail, read);
        if (stream != NULL && stream->failed == TL_OK)
            *entries += deliver(tail, read);
    }
    return true;
}

bool tl_tail_read_one(struct tl_tail *tail, struct tl_redis *redis, int64_t block_ms,
                      size_t *entries, struct tl_error *err)
{
    struct tl_error problem = {0};
    size_t total = 0;
    entries = entries != NULL ? entries : &total;
    *entries = 0;
    if (tl_streams_read(&tail->streams, redis, ENTRIES_PER_READ, block_ms, &problem))
        return take(tail, redis, entries, err);
    if (problem.kind == TL_ERR_STORE && stop_wrong_types(tail, redis))
        return true;
    if (err != NULL)
        *err = problem;
    return false;
}

bool tl_tail_read(struct tl_tail *tail, struct tl_store *store, int64_t block_ms, size_t *entries,
                  struct tl_error *err)
{
    if (!tl_redis_is_node(tl_store_common(store)))
        return tl_tail_read_one(tail, tl_store_common(store), block_ms, entries, err);
    size_t total = 0;
    entries = entries != NULL ? entries : &total;
    *entries = 0;
    tl_streams_wait(&tail->streams, store, block_ms);
    for (size_t i = 0; i < tl_store_nodes(store); i++) {
        struct tl_redis *redis = tl_store_node(store, i);
        if (tl_redis_connected(redis) &&
            tl_streams_read(&tail->streams, redis, ENTRIES_PER_READ, 0, NULL))
            (void)take(tail, redis, entries, NULL);
    }
    stop_refused(tail);
    return true;
}
