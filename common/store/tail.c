#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/store/reply.h"
#include "common/store/script.h"
#include "common/store/tail.h"

#include "generated/store_scripts.h"

/* Entries taken from one stream at a time, so that one busy queue does not starve the others. */
#define ENTRIES_PER_READ "500"

struct followed {
    const struct tl_keys *keys; /* borrowed */
    char id[48];                /* the last entry passed to the handler */
    bool stopped;               /* the handler returned false; no entries until the next follow */
};

struct tl_tail {
    tl_tail_handler *handler;
    void *context;
    tl_tail_gate *gate; /* NULL: none */
    void *gate_context;
    struct followed *queues;
    size_t n, capacity;
    struct tl_args args;
};

struct tl_tail *tl_tail_new(tl_tail_handler *handler, void *context)
{
    struct tl_tail *tail = calloc(1, sizeof(*tail));
    if (tail == NULL)
        return NULL;
    tail->handler = handler;
    tail->context = context;
    return tail;
}

void tl_tail_free(struct tl_tail **tail)
{
    if (*tail == NULL)
        return;
    tl_args_free(&(*tail)->args);
    free((*tail)->queues);
    free(*tail);
    *tail = NULL;
}

bool tl_tail_follows(const struct tl_tail *tail, const struct tl_keys *keys)
{
    for (size_t i = 0; i < tail->n; i++)
        if (strcmp(tail->queues[i].keys->queue, keys->queue) == 0)
            return !tail->queues[i].stopped;
    return false;
}

size_t tl_tail_count(const struct tl_tail *tail)
{
    return tail->n;
}

bool tl_tail_head(struct tl_redis *redis, const struct tl_keys *keys, struct tl_tail_head *head,
                  struct tl_error *err)
{
    struct tl_reply *reply = tl_script_read(redis, tl_script_head, keys, err);
    if (reply == NULL)
        return false;
    head->generation = (uint64_t)tl_reply_integer(tl_reply_at(reply, 0));
    head->event = (uint64_t)tl_reply_integer(tl_reply_at(reply, 1));
    head->seq = (uint64_t)tl_reply_integer(tl_reply_at(reply, 5));
    snprintf(head->id, sizeof(head->id), "%s", tl_reply_string(tl_reply_at(reply, 2), NULL));
    head->base_seq = (uint64_t)tl_reply_integer(tl_reply_at(reply, 3));
    head->found_seq = (uint64_t)tl_reply_integer(tl_reply_at(reply, 4));
    head->turns.event = head->event;
    snprintf(head->turns.field, sizeof(head->turns.field), "%s",
             tl_reply_string(tl_reply_at(reply, 6), NULL));
    tl_reply_free(reply);
    return true;
}

void tl_tail_set_gate(struct tl_tail *tail, tl_tail_gate *gate, void *context)
{
    tail->gate = gate;
    tail->gate_context = context;
}

static struct followed *find(struct tl_tail *tail, const char *queue)
{
    for (size_t i = 0; i < tail->n; i++)
        if (strcmp(tail->queues[i].keys->queue, queue) == 0)
            return &tail->queues[i];
    return NULL;
}

bool tl_tail_follow(struct tl_tail *tail, const struct tl_keys *keys,
                    const struct tl_tail_head *head, struct tl_error *err)
{
    struct followed *followed = find(tail, keys->queue);
    if (followed == NULL && tail->n == tail->capacity) {
        size_t capacity = tail->capacity == 0 ? 8 : tail->capacity * 2;
        struct followed *queues = reallocarray(tail->queues, capacity, sizeof(*queues));
        if (queues == NULL)
            return tl_error_set(err, TL_ERR_NOMEM, "no memory to follow %zu queues", capacity);
        tail->queues = queues;
        tail->capacity = capacity;
    }
    if (followed == NULL)
        followed = &tail->queues[tail->n++];
    followed->keys = keys;
    followed->stopped = false;
    snprintf(followed->id, sizeof(followed->id), "%s", head->id);
    return true;
}

void tl_tail_forget(struct tl_tail *tail, const struct tl_keys *keys)
{
    struct followed *followed = find(tail, keys->queue);
    if (followed != NULL)
        *followed = tail->queues[--tail->n];
}

/* XREAD [BLOCK ms] COUNT n STREAMS key... id... over all followed queues. False when there is none.
 */
static bool build_read(struct tl_tail *tail, int64_t block_ms)
{
    struct tl_args *args = &tail->args;
    tl_args_reset(args);
    tl_args_strs(args, "XREAD", "COUNT", ENTRIES_PER_READ, NULL);
    if (block_ms > 0) {
        tl_args_str(args, "BLOCK");
        tl_args_int(args, block_ms);
    }
    tl_args_str(args, "STREAMS");
    size_t before = args->n;
    for (size_t i = 0; i < tail->n; i++)
        if (!tail->queues[i].stopped)
            tl_args_str(args, tail->queues[i].keys->names[TL_KEY_EVENTS]);
    if (args->n == before)
        return false;
    for (size_t i = 0; i < tail->n; i++)
        if (!tail->queues[i].stopped)
            tl_args_str(args, tail->queues[i].id);
    return true;
}

/* Passes the entries of one stream to the handler: [key, [[id, [field, value...]]...]]. */
static size_t deliver(struct tl_tail *tail, const struct tl_reply *stream)
{
    const char *key = tl_reply_string(tl_reply_at(stream, 0), NULL);
    struct followed *followed = NULL;
    for (size_t i = 0; i < tail->n && followed == NULL; i++)
        if (strcmp(tail->queues[i].keys->names[TL_KEY_EVENTS], key) == 0)
            followed = &tail->queues[i];
    if (followed == NULL)
        return 0;
    const struct tl_reply *entries = tl_reply_at(stream, 1);
    size_t n = tl_reply_count(entries);
    for (size_t i = 0; i < n && !followed->stopped; i++) {
        const struct tl_reply *entry = tl_reply_at(entries, i);
        size_t length;
        const char *payload = tl_reply_string(tl_reply_at(tl_reply_at(entry, 1), 1), &length);
        snprintf(followed->id, sizeof(followed->id), "%s",
                 tl_reply_string(tl_reply_at(entry, 0), NULL));
        if (!tail->handler(tail->context, followed->keys, payload, length))
            followed->stopped = true;
    }
    return n;
}

/* Stops the queues whose key is no stream. False when there is none. */
static bool stop_wrong_types(struct tl_tail *tail, struct tl_redis *redis)
{
    bool found = false;
    for (size_t i = 0; i < tail->n; i++) {
        struct followed *followed = &tail->queues[i];
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
    if (!build_read(tail, block_ms))
        return true;
    struct tl_error problem = {0};
    struct tl_reply *reply = tl_redis_call_blocking(redis, &tail->args, block_ms, &problem);
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
    for (size_t i = 0; ok && i < tl_reply_count(reply); i++)
        total += deliver(tail, tl_reply_at(reply, i));
    if (entries != NULL)
        *entries = total;
    tl_reply_free(reply);
    return ok;
}
