/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "common/base/clock.h"
#include "common/store/reply.h"
#include "common/store/wakes.h"

#define CHANNEL "__redis__:invalidate"

struct tl_wakes {
    tl_wakes_note *note;
    void *context;
    struct tl_redis *listener; /* NULL: not open */
    uint64_t epoch;            /* of the connection whose reads are remembered */
    int64_t sweep_ms;          /* when all streams are noted again */
};

struct tl_wakes *tl_wakes_new(tl_wakes_note *note, void *context)
{
    struct tl_wakes *wakes = calloc(1, sizeof(*wakes));
    if (wakes == NULL)
        return NULL;
    wakes->note = note;
    wakes->context = context;
    return wakes;
}

void tl_wakes_free(struct tl_wakes **wakes)
{
    if (*wakes == NULL)
        return;
    tl_redis_free(&(*wakes)->listener);
    free(*wakes);
    *wakes = NULL;
}

/* Opens the second connection, and has the server send there what is written. */
static bool open_listener(struct tl_wakes *wakes, struct tl_redis *redis, struct tl_error *err)
{
    struct tl_args args = {0};
    tl_redis_free(&wakes->listener);
    struct tl_redis *listener = wakes->listener = tl_redis_new_beside(redis, err);
    bool ok = listener != NULL && tl_redis_connect(listener, err);
    tl_args_strs(&args, "CLIENT", "ID", NULL);
    struct tl_reply *id = ok ? tl_redis_call(listener, &args, err) : NULL;
    tl_args_reset(&args);
    tl_args_strs(&args, "SUBSCRIBE", CHANNEL, NULL);
    ok = id != NULL && tl_redis_do(listener, &args, err);
    tl_args_reset(&args);
    tl_args_strs(&args, "CLIENT", "TRACKING", "ON", "OPTIN", "REDIRECT", NULL);
    tl_args_int(&args, tl_reply_integer(id));
    ok = ok && tl_redis_do(redis, &args, err);
    tl_args_free(&args);
    tl_reply_free(id);
    if (!ok)
        tl_redis_free(&wakes->listener);
    wakes->epoch = tl_redis_epoch(redis);
    wakes->sweep_ms = 0;
    return ok;
}

/* A message is [message, channel, keys], without keys after FLUSHALL. */
static void take(struct tl_wakes *wakes, const struct tl_reply *message)
{
    const struct tl_reply *keys = tl_reply_at(message, 2);
    if (tl_reply_type(keys) != TL_REPLY_ARRAY)
        wakes->note(wakes->context, NULL);
    for (size_t i = 0; i < tl_reply_count(keys); i++)
        wakes->note(wakes->context, tl_reply_string(tl_reply_at(keys, i), NULL));
}

bool tl_wakes_wait(struct tl_wakes *wakes, struct tl_redis *redis, int64_t wait_ms,
                   struct tl_error *err)
{
    bool open = wakes->listener != NULL && tl_redis_connected(wakes->listener) &&
                wakes->epoch == tl_redis_epoch(redis);
    if (!open && !open_listener(wakes, redis, err))
        return false;
    int64_t now_ms = tl_clock_ms();
    if (now_ms >= wakes->sweep_ms) {
        wakes->note(wakes->context, NULL);
        wakes->sweep_ms = now_ms + TL_WAKES_SWEEP_MS;
        wait_ms = 0;
    }
    if (wait_ms > wakes->sweep_ms - now_ms)
        wait_ms = wakes->sweep_ms - now_ms;
    struct tl_reply *message;
    do {
        if (!tl_redis_await(wakes->listener, wait_ms, &message, err))
            return false;
        if (message != NULL)
            take(wakes, message);
        tl_reply_free(message);
        wait_ms = 0; /* and what else has come */
    } while (message != NULL);
    return true;
}

struct tl_reply *tl_wakes_read(struct tl_redis *redis, const struct tl_args *look,
                               const struct tl_args *read, struct tl_error *err)
{
    struct tl_args caching = {0};
    const struct tl_args *commands[] = {&caching, look != NULL ? look : read, read};
    size_t n = look != NULL ? 3 : 2;
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
