/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/auth/draw.h"
#include "common/store/feedback.h"
#include "common/store/keys.h"
#include "common/store/library.h"
#include "common/store/records.h"
#include "common/store/reply.h"
#include "common/store/signs.h"
#include "worker/feed/exchange.h"

static bool append_batch(const struct tl_exchange *exchange, struct tl_redis *redis,
                         struct tl_args *args, const struct tl_keys *keys, struct tl_error *err)
{
    if (exchange->past_limit) {
        tl_call_begin(args, TL_FN_APPEND, keys);
    } else {
        tl_args_reset(args);
        /* NOMKSTREAM: a deleted queue must not come back as a lone stream. */
        tl_args_strs(args, "XADD", keys->names[TL_KEY_INGEST], "NOMKSTREAM", "*", "d", NULL);
    }
    tl_args_bin(args, exchange->bytes, exchange->length);
    return tl_redis_append(redis, args, err);
}

/* In the order in which a visitor changes state, so that one who moves between two answers is
 * found.
 */
static const struct {
    const char *command;
    enum tl_key key;
} lookups[] = {{"ZSCORE", TL_KEY_WAITING}, {"HGET", TL_KEY_SESSIONS}, {"ZSCORE", TL_KEY_ENDED}};
enum { LOOKUPS = sizeof(lookups) / sizeof(lookups[0]) };

static bool append_lookup(const struct tl_exchange *exchange, struct tl_redis *redis,
                          struct tl_args *args, const struct tl_keys *keys, struct tl_error *err)
{
    for (size_t i = 0; i < LOOKUPS; i++) {
        tl_args_reset(args);
        tl_args_strs(args, lookups[i].command, keys->names[lookups[i].key], exchange->visitor,
                     NULL);
        if (!tl_redis_append(redis, args, err))
            return false;
    }
    return true;
}

/* False for a refusal: the store has answered. A replica's answer is none: an earlier attempt may
 * have reached the master. */
static bool outcome_unknown(const struct tl_error *err)
{
    return err->kind == TL_ERR_CONNECT || err->kind == TL_ERR_TIMEOUT ||
           err->kind == TL_ERR_PROTOCOL || err->kind == TL_ERR_READONLY;
}

static bool receive_batch(struct tl_exchange *exchange, struct tl_redis *redis,
                          struct tl_error *refusal, struct tl_error *err)
{
    struct tl_error problem = {0};
    struct tl_reply *reply = tl_redis_next(redis, &problem);
    if (reply == NULL && outcome_unknown(&problem)) {
        *err = problem;
        return false;
    }
    if (tl_reply_type(reply) == TL_REPLY_STRING)
        snprintf(exchange->entry, sizeof(exchange->entry), "%s", tl_reply_string(reply, NULL));
    else if (reply != NULL)
        tl_error_set(&problem, TL_ERR_NOQUEUE, "the queue does not exist in the store");
    *refusal = problem;
    tl_reply_free(reply);
    return true;
}

/* Receives n answers; frees none. As tl_exchange_receive. */
static bool receive_answers(struct tl_redis *redis, struct tl_reply **replies, size_t n,
                            struct tl_error *refusal, struct tl_error *err)
{
    bool ok = true;
    for (size_t i = 0; i < n && ok; i++) {
        struct tl_error problem = {0};
        replies[i] = tl_redis_next(redis, &problem);
        if (replies[i] == NULL) {
            ok = !outcome_unknown(&problem);
            *(ok ? refusal : err) = problem;
        }
    }
    return ok;
}

static bool receive_lookup(struct tl_exchange *exchange, struct tl_redis *redis,
                           struct tl_error *refusal, struct tl_error *err)
{
    struct tl_reply *replies[LOOKUPS] = {NULL};
    bool ok = receive_answers(redis, replies, LOOKUPS, refusal, err);
    if (ok && refusal->kind == TL_OK) {
        tl_place held = 0;
        struct tl_session_record session;
        struct tl_end_record end;
        if (tl_record_session(tl_reply_string(replies[1], NULL), &session))
            held = session.place;
        else
            (void)tl_record_place(tl_reply_string(replies[0], NULL), &held);
        if (held == exchange->place && held != 0) {
            exchange->found = TL_LOOKUP_ALIVE;
        } else if (tl_record_end(tl_reply_string(replies[2], NULL), &end) &&
                   end.ended_ms >= exchange->since_ms && (exchange->since_ms == 0 || held == 0)) {
            exchange->found = TL_LOOKUP_ENDED;
            exchange->reason = end.reason;
        } else {
            exchange->found = TL_LOOKUP_NOWHERE;
        }
    }
    for (size_t i = 0; i < LOOKUPS; i++)
        tl_reply_free(replies[i]);
    return ok;
}

/* Is the entry still there, what was applied last of this worker, and in which event at the latest?
 */
enum { CHECKS = 3 };

static bool append_check(const struct tl_exchange *exchange, struct tl_redis *redis,
                         struct tl_args *args, const struct tl_keys *keys, struct tl_error *err)
{
    tl_args_reset(args);
    tl_args_strs(args, "XRANGE", keys->names[TL_KEY_INGEST], exchange->entry, exchange->entry,
                 NULL);
    if (!tl_redis_append(redis, args, err))
        return false;
    tl_args_reset(args);
    tl_args_strs(args, "HGET", keys->names[TL_KEY_BATCHES], exchange->worker, NULL);
    if (!tl_redis_append(redis, args, err))
        return false;
    tl_args_reset(args);
    tl_args_strs(args, "HGET", keys->names[TL_KEY_STATE], "event", NULL);
    return tl_redis_append(redis, args, err);
}

static bool receive_check(struct tl_exchange *exchange, struct tl_redis *redis,
                          struct tl_error *refusal, struct tl_error *err)
{
    struct tl_reply *replies[CHECKS] = {NULL};
    bool ok = receive_answers(redis, replies, CHECKS, refusal, err);
    if (ok && refusal->kind == TL_OK) {
        const char *last = tl_reply_string(replies[1], NULL); /* "batch:applied at ms", or "" */
        bool applied = strtoull(last, NULL, 10) >= exchange->number;
        exchange->check.waits = tl_reply_count(replies[0]) > 0 && !applied;
        if (applied)
            exchange->check.event = strtoull(tl_reply_string(replies[2], NULL), NULL, 10);
    }
    for (size_t i = 0; i < CHECKS; i++)
        tl_reply_free(replies[i]);
    return ok;
}

/* A stream of so many entries: exactly as many as readers look at, 50 KB of memory at most. */
static bool append_note(const struct tl_exchange *exchange, struct tl_redis *redis,
                        struct tl_args *args, const char *key, int64_t kept, struct tl_error *err)
{
    tl_args_reset(args);
    tl_args_strs(args, "XADD", key, "MAXLEN", NULL);
    tl_args_int(args, kept);
    tl_args_strs(args, "*", "d", NULL);
    tl_args_bin(args, exchange->bytes, exchange->length);
    return tl_redis_append(redis, args, err);
}

static bool receive_note(struct tl_redis *redis, struct tl_error *refusal, struct tl_error *err)
{
    struct tl_reply *reply = NULL;
    bool ok = receive_answers(redis, &reply, 1, refusal, err);
    tl_reply_free(reply);
    return ok;
}

/* tl:{q}:drawn has 16 bytes that are no id before the first one. */
static bool append_drawn(const struct tl_exchange *exchange, struct tl_redis *redis,
                         struct tl_args *args, const struct tl_keys *keys, struct tl_error *err)
{
    char key[TL_KEY_MAX];
    tl_args_reset(args);
    tl_args_strs(args, "GETRANGE", tl_key(keys, TL_KEY_DRAWN, key), NULL);
    tl_args_uint(args, exchange->from * TL_DRAW_ID_BYTES);
    tl_args_uint(args, (exchange->from + exchange->n) * TL_DRAW_ID_BYTES - 1);
    return tl_redis_append(redis, args, err);
}

static bool receive_drawn(struct tl_exchange *exchange, struct tl_redis *redis,
                          struct tl_error *refusal, struct tl_error *err)
{
    struct tl_reply *reply = NULL;
    bool ok = receive_answers(redis, &reply, 1, refusal, err);
    if (reply != NULL) {
        size_t length;
        const char *ids = tl_reply_string(reply, &length);
        exchange->bytes = malloc(length + 1);
        if (exchange->bytes != NULL)
            memcpy(exchange->bytes, ids, length);
        else
            tl_error_set(refusal, TL_ERR_NOMEM, "no memory for the draw ids");
        exchange->length = exchange->bytes != NULL ? length : 0;
    }
    tl_reply_free(reply);
    return ok;
}

static bool append_promised(const struct tl_exchange *exchange, struct tl_redis *redis,
                            struct tl_args *args, const struct tl_keys *keys, struct tl_error *err)
{
    tl_call_begin(args, TL_FN_PROMISED, keys);
    tl_args_uint(args, exchange->promised.judged);
    tl_args_uint(args, exchange->promised.early);
    tl_args_uint(args, exchange->promised.late);
    tl_args_uint(args, exchange->promised.error_percent);
    return tl_redis_append(redis, args, err);
}

bool tl_exchange_append(const struct tl_exchange *exchange, struct tl_redis *redis,
                        struct tl_args *args, const char *key_prefix, struct tl_error *err)
{
    char key[TL_KEY_MAX];
    struct tl_keys keys;
    tl_keys_init(&keys, key_prefix, exchange->queue);
    switch (exchange->kind) {
    case TL_EXCHANGE_BATCH:
        return append_batch(exchange, redis, args, &keys, err);
    case TL_EXCHANGE_CHECK:
        return append_check(exchange, redis, args, &keys, err);
    case TL_EXCHANGE_LOOKUP:
        return append_lookup(exchange, redis, args, &keys, err);
    case TL_EXCHANGE_SIGNS:
        return append_note(exchange, redis, args, tl_key(&keys, TL_KEY_SIGNS, key), TL_SIGNS_KEPT,
                           err);
    case TL_EXCHANGE_FEEDBACK:
        return append_note(exchange, redis, args, tl_key(&keys, TL_KEY_FEEDBACK, key),
                           TL_FEEDBACK_KEPT, err);
    case TL_EXCHANGE_DRAWN:
        return append_drawn(exchange, redis, args, &keys, err);
    case TL_EXCHANGE_PROMISED:
        return append_promised(exchange, redis, args, &keys, err);
    }
    return false;
}

bool tl_exchange_receive(struct tl_exchange *exchange, struct tl_redis *redis,
                         struct tl_error *refusal, struct tl_error *err)
{
    switch (exchange->kind) {
    case TL_EXCHANGE_BATCH:
        return receive_batch(exchange, redis, refusal, err);
    case TL_EXCHANGE_CHECK:
        return receive_check(exchange, redis, refusal, err);
    case TL_EXCHANGE_LOOKUP:
        return receive_lookup(exchange, redis, refusal, err);
    case TL_EXCHANGE_SIGNS:
    case TL_EXCHANGE_FEEDBACK:
    case TL_EXCHANGE_PROMISED:
        return receive_note(redis, refusal, err);
    case TL_EXCHANGE_DRAWN:
        return receive_drawn(exchange, redis, refusal, err);
    }
    return false;
}

/* The same command on a stream that does not exist changes nothing, and is refused for the same
 * reasons. */
bool tl_exchange_probe(struct tl_redis *redis, struct tl_args *args, const char *key_prefix,
                       struct tl_error *refusal, struct tl_error *err)
{
    struct tl_keys keys;
    tl_keys_init(&keys, key_prefix, "none:none"); /* no queue's name */
    tl_args_reset(args);
    tl_args_strs(args, "XADD", keys.names[TL_KEY_INGEST], "NOMKSTREAM", "*", "d", "", NULL);
    struct tl_reply *reply = tl_redis_call(redis, args, refusal);
    bool ok = reply != NULL || !outcome_unknown(refusal);
    tl_reply_free(reply);
    if (!ok)
        *err = *refusal;
    return ok;
}
