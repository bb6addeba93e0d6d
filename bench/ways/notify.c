/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A counter of the active, raised on admission, lowered by a listener to Redis's keyspace
 * notifications: each active token is a key with a TTL, and its `expired` message is one less.
 *
 * Kept from the design: nothing but the messages lowers the counter. They are fire and forget: what
 * is sent without a listener is lost, and the counter stays too high for ever.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#include <hiredis/hiredis.h>

#include "common/store/reply.h"
#include "token.h"

#define SILENCE_MS 1500 /* no message for so long: none will come */

struct notify {
    struct pipe pipe;
    redisContext *listener; /* of the first actor */
};

static void listen_again(struct notify *self)
{
    struct timeval patience = {.tv_sec = SILENCE_MS / 1000, .tv_usec = SILENCE_MS % 1000 * 1000};
    self->listener = redisConnectUnix(getenv("BENCH_REDIS"));
    if (self->listener == NULL || self->listener->err != 0)
        way_die("the listener cannot connect");
    freeReplyObject(redisCommand(self->listener, "SUBSCRIBE __keyevent@0__:expired"));
    redisSetTimeout(self->listener, patience);
}

static void *notify_open(void)
{
    struct notify *self = calloc(1, sizeof(*self));
    if (self == NULL)
        way_die("out of memory");
    pipe_open(&self->pipe);
    return self;
}

static void notify_close(void *actor)
{
    struct notify *self = actor;
    pipe_close(&self->pipe);
    if (self->listener != NULL)
        redisFree(self->listener);
    free(self);
}

static void setup(void *actor)
{
    struct notify *self = actor;
    pipe_flush_all(&self->pipe);
    pipe_ask(&self->pipe, "CONFIG", "SET", "notify-keyspace-events", "Ex", NULL);
    listen_again(self);
}

static int64_t counted(void *actor)
{
    return pipe_ask(&((struct notify *)actor)->pipe, "GET", "count", NULL);
}

static uint64_t admit(void *actor)
{
    struct pipe *pipe = &((struct notify *)actor)->pipe;
    uint64_t active = (uint64_t)counted(actor);
    if (active >= WAY_CAPACITY)
        return 0;
    uint64_t n = token_activate(pipe, WAY_CAPACITY - active, NULL);
    pipe_begin(pipe, "INCRBY", "count");
    tl_args_uint(&pipe->args, n);
    tl_reply_free(pipe_call(pipe));
    return n;
}

/* Handles messages until the counter is down, or none has come for a while. */
static uint64_t expire(void *actor, uint64_t most)
{
    struct notify *self = actor;
    int64_t left = counted(actor);
    uint64_t ended = 0;
    while (left > 0 && ended < most) {
        void *reply = NULL;
        if (redisGetReply(self->listener, &reply) != REDIS_OK)
            break; /* silence */
        freeReplyObject(reply);
        left = pipe_ask(&self->pipe, "DECR", "count", NULL);
        ended++;
    }
    if (self->listener->err != 0) {
        redisFree(self->listener);
        listen_again(self);
    }
    return ended;
}

static void restart(void *actor)
{
    struct notify *self = actor;
    redisFree(self->listener);
    way_sleep_ms(200);
    listen_again(self);
}

static void join(void *actor, uint64_t first, uint64_t n)
{
    line_join(&((struct notify *)actor)->pipe, first, n);
}

static void positions(void *actor, const uint64_t *visitors, size_t n, uint64_t *answers)
{
    line_positions(&((struct notify *)actor)->pipe, visitors, n, answers);
}

const struct way way_notify = {
    .name = "counter by notifications",
    .what =
        "A counter raised on admission; every active token is a key with a TTL, and a listener to "
        "the keyspace's `expired` messages lowers the counter. Order in a Sorted Set.",
    .source = "Ticketping: expired tokens by Redis keyspace notifications, "
              "https://nicky777.tistory.com/5 ; that messages are fire and forget: Redis "
              "documentation, https://redis.io/topics/notifications",
    .open = notify_open,
    .close = notify_close,
    .setup = setup,
    .join = join,
    .positions = positions,
    .admit = admit,
    .expire = expire,
    .restart = restart,
    .counted = counted,
};
