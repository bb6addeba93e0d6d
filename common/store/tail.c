/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/named.h"
#include "common/store/library.h"
#include "common/store/reply.h"
#include "common/store/tail.h"
#include "common/store/wakes.h"

/* Entries taken from one stream at a time, so that one busy queue does not starve the others. */
#define ENTRIES_PER_READ 500

struct followed {
    const struct tl_keys *keys; /* borrowed */
    char id[48];                /* the last entry passed to the handler */
    bool stopped;               /* the handler returned false; no entries until the next follow */
    bool unread;                /* there may be entries after id; blocking reads do not ask */
};

struct tl_tail {
    tl_tail_handler *handler;
    void *context;
    tl_tail_gate *gate; /* NULL: none */
    void *gate_context;
    struct tl_named queues; /* struct followed, by the name of the stream */
    struct tl_wakes *wakes;
    struct tl_args args;
};

static struct followed *at(const struct tl_tail *tail, size_t i)
{
    return tail->queues.all[i].thing;
}

static struct followed *find(const struct tl_tail *tail, const struct tl_keys *keys)
{
    return tl_named_find(&tail->queues, keys->names[TL_KEY_EVENTS]);
}

/* tl_wakes_note */
static void note(void *context, const char *stream)
{
    struct tl_tail *tail = context;
    struct followed *followed = stream != NULL ? tl_named_find(&tail->queues, stream) : NULL;
    if (followed != NULL)
        followed->unread = true;
    for (size_t i = 0; stream == NULL && i < tail->queues.n; i++)
        at(tail, i)->unread = true;
}

struct tl_tail *tl_tail_new(tl_tail_handler *handler, void *context)
{
    struct tl_tail *tail = calloc(1, sizeof(*tail));
    if (tail == NULL)
        return NULL;
    tail->handler = handler;
    tail->context = context;
    tail->wakes = tl_wakes_new(note, tail);
    if (tail->wakes == NULL)
        tl_tail_free(&tail);
    return tail;
}

void tl_tail_free(struct tl_tail **tail)
{
    if (*tail == NULL)
        return;
    tl_wakes_free(&(*tail)->wakes);
    tl_args_free(&(*tail)->args);
    for (size_t i = 0; i < (*tail)->queues.n; i++)
        free(at(*tail, i));
    tl_named_free(&(*tail)->queues);
    free(*tail);
    *tail = NULL;
}

bool tl_tail_follows(const struct tl_tail *tail, const struct tl_keys *keys)
{
    const struct followed *followed = find(tail, keys);
    return followed != NULL && !followed->stopped;
}

size_t tl_tail_count(const struct tl_tail *tail)
{
    return tail->queues.n;
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
    struct followed *followed = find(tail, keys);
    if (followed == NULL) {
        followed = malloc(sizeof(*followed));
        if (followed == NULL ||
            !tl_named_add(&tail->queues, keys->names[TL_KEY_EVENTS], followed)) {
            free(followed);
            return tl_error_set(err, TL_ERR_NOMEM, "no memory to follow queue %s", keys->queue);
        }
    }
    *followed = (struct followed){.keys = keys, .unread = true};
    snprintf(followed->id, sizeof(followed->id), "%s", head->id);
    return true;
}

void tl_tail_forget(struct tl_tail *tail, const struct tl_keys *keys)
{
    free(tl_named_remove(&tail->queues, keys->names[TL_KEY_EVENTS]));
}

/* ---- reading ---- */

/* Does the next read ask for this queue? */
static bool is_asked(const struct followed *followed, bool blocking)
{
    return !followed->stopped && (blocking || followed->unread);
}

static size_t count_asked(const struct tl_tail *tail, bool blocking)
{
    size_t n = 0;
    for (size_t i = 0; i < tail->queues.n; i++)
        n += is_asked(at(tail, i), blocking) ? 1 : 0;
    return n;
}

/* XREAD COUNT n [BLOCK ms] STREAMS key... id... */
static struct tl_reply *ask(struct tl_tail *tail, struct tl_redis *redis, bool blocking,
                            int64_t block_ms, struct tl_error *err)
{
    struct tl_args *args = &tail->args;
    tl_args_reset(args);
    tl_args_strs(args, "XREAD", "COUNT", NULL);
    tl_args_int(args, ENTRIES_PER_READ);
    if (blocking && block_ms > 0) {
        tl_args_str(args, "BLOCK");
        tl_args_int(args, block_ms);
    }
    tl_args_str(args, "STREAMS");
    for (size_t i = 0; i < tail->queues.n; i++)
        if (is_asked(at(tail, i), blocking))
            tl_args_str(args, at(tail, i)->keys->names[TL_KEY_EVENTS]);
    for (size_t i = 0; i < tail->queues.n; i++)
        if (is_asked(at(tail, i), blocking))
            tl_args_str(args, at(tail, i)->id);
    return blocking ? tl_redis_call_blocking(redis, args, block_ms, err)
                    : tl_wakes_read(redis, NULL, args, err);
}

/* Passes the entries of one stream to the handler: [key, [[id, [field, value...]]...]]. */
static size_t deliver(struct tl_tail *tail, const struct tl_reply *stream)
{
    struct followed *followed = tl_named_find(&tail->queues, tl_reply_text(stream, 0));
    if (followed == NULL)
        return 0;
    const struct tl_reply *entries = tl_reply_at(stream, 1);
    size_t n = tl_reply_count(entries);
    followed->unread = followed->unread || n >= ENTRIES_PER_READ;
    for (size_t i = 0; i < n && !followed->stopped; i++) {
        const struct tl_reply *entry = tl_reply_at(entries, i);
        size_t length;
        const char *payload = tl_reply_string(tl_reply_at(tl_reply_at(entry, 1), 1), &length);
        snprintf(followed->id, sizeof(followed->id), "%s", tl_reply_text(entry, 0));
        if (!tail->handler(tail->context, followed->keys, payload, length))
            followed->stopped = true;
    }
    return n;
}

/* Stops the queues whose key is no stream. False when there is none. */
static bool stop_wrong_types(struct tl_tail *tail, struct tl_redis *redis)
{
    bool found = false;
    for (size_t i = 0; i < tail->queues.n; i++) {
        struct followed *followed = at(tail, i);
        if (followed->stopped)
            continue;
        tl_args_reset(&tail->args);
        tl_args_strs(&tail->args, "TYPE", followed->keys->names[TL_KEY_EVENTS], NULL);
        struct tl_reply *reply = tl_redis_call(redis, &tail->args, NULL);
        const char *type = tl_reply_string(reply, NULL);
        followed->stopped =
            reply != NULL && strcmp(type, "stream") != 0 && strcmp(type, "none") != 0;
        found = found || followed->stopped;
        tl_reply_free(reply);
    }
    return found;
}

bool tl_tail_read(struct tl_tail *tail, struct tl_redis *redis, int64_t block_ms, size_t *entries,
                  struct tl_error *err)
{
    if (entries != NULL)
        *entries = 0;
    bool blocking = tail->queues.n <= TL_WAKES_BLOCKING_MAX;
    if (!blocking &&
        !tl_wakes_wait(tail->wakes, redis, count_asked(tail, false) > 0 ? 0 : block_ms, err))
        return false;
    if (count_asked(tail, blocking) == 0)
        return true;
    struct tl_error problem = {0};
    struct tl_reply *reply = ask(tail, redis, blocking, block_ms, &problem);
    if (reply == NULL) {
        if (problem.kind == TL_ERR_STORE && stop_wrong_types(tail, redis))
            return true;
        if (err != NULL)
            *err = problem;
        return false;
    }
    size_t total = 0;
    bool ok = tl_reply_count(reply) == 0 || tail->gate == NULL ||
              tail->gate(tail->gate_context, redis, err);
    for (size_t i = 0; ok && !blocking && i < tail->queues.n; i++)
        at(tail, i)->unread = false;
    for (size_t i = 0; ok && i < tl_reply_count(reply); i++)
        total += deliver(tail, tl_reply_at(reply, i));
    if (entries != NULL)
        *entries = total;
    tl_reply_free(reply);
    return ok;
}
