/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The limit: what Redis does if one asks no more of it than a Sorted Set. No design can be faster
 * with this Redis and this client; what a design adds (exactly once, order, telling everyone)
 * costs.
 */
#include <stdlib.h>

#include "common/store/reply.h"
#include "limit.h"

void *limit_open(void)
{
    struct pipe *pipe = malloc(sizeof(*pipe));
    if (pipe == NULL)
        way_die("out of memory");
    pipe_open(pipe);
    return pipe;
}

void limit_close(void *actor)
{
    pipe_close(actor);
    free(actor);
}

void limit_setup(void *actor)
{
    pipe_flush_all(actor);
}

void limit_join(void *actor, uint64_t first, uint64_t n)
{
    line_join(actor, first, n);
}

void limit_positions(void *actor, const uint64_t *visitors, size_t n, uint64_t *answers)
{
    line_positions(actor, visitors, n, answers);
}

static uint64_t admit(void *actor)
{
    struct pipe *pipe = actor;
    uint64_t active = (uint64_t)limit_counted(pipe);
    if (active >= WAY_CAPACITY)
        return 0;
    int64_t deadline = pipe_now_ms(pipe) + WAY_TTL_MS;
    struct tl_reply *called = line_pop(pipe, WAY_CAPACITY - active);
    uint64_t n = tl_reply_count(called) / 2;
    pipe_begin(pipe, "ZADD", "active");
    for (uint64_t i = 0; i < n; i++) {
        tl_args_int(&pipe->args, deadline);
        tl_args_str(&pipe->args, tl_reply_text(called, 2 * i));
    }
    tl_reply_free(called);
    if (n > 0)
        tl_reply_free(pipe_call(pipe));
    return n;
}

/* One command: nothing can be killed half-way. */
uint64_t limit_expire(void *actor, uint64_t most)
{
    struct pipe *pipe = actor;
    (void)most;
    int64_t now_ms = pipe_now_ms(pipe);
    pipe_begin(pipe, "ZREMRANGEBYSCORE", "active");
    tl_args_str(&pipe->args, "-inf");
    tl_args_int(&pipe->args, now_ms);
    struct tl_reply *reply = pipe_call(pipe);
    uint64_t n = (uint64_t)tl_reply_integer(reply);
    tl_reply_free(reply);
    return n;
}

void limit_restart(void *actor)
{
    pipe_close(actor);
    way_sleep_ms(200);
    pipe_open(actor);
}

int64_t limit_counted(void *actor)
{
    return pipe_ask(actor, "ZCARD", "active", NULL);
}

const struct way way_limit = {
    .name = "plain Redis",
    .what = "The limit: variadic ZADD to join, ZRANK for a position, ZPOPMIN and ZADD to admit, "
            "ZREMRANGEBYSCORE to end. Nothing is told to anyone, nothing is safe against a crash "
            "between two commands.",
    .source = "Redis documentation, Sorted Sets, https://redis.io/docs/data-types/sorted-sets/",
    .open = limit_open,
    .close = limit_close,
    .setup = limit_setup,
    .join = limit_join,
    .positions = limit_positions,
    .admit = admit,
    .expire = limit_expire,
    .restart = limit_restart,
    .counted = limit_counted,
};

/* ---- one command per join, for comparison ---- */

static void single_join(void *actor, uint64_t first, uint64_t n)
{
    struct pipe *pipe = actor;
    for (uint64_t i = 0; i < n; i++) {
        pipe_begin(pipe, "ZADD", "waiting");
        tl_args_str(&pipe->args, "NX");
        tl_args_uint(&pipe->args, first + i);
        pipe_visitor(pipe, first + i);
        pipe_send(pipe, PIPE_SINGLE);
        pipe_begin(pipe, "ZRANK", "waiting");
        pipe_visitor(pipe, first + i);
        pipe_send(pipe, PIPE_SINGLE);
    }
    pipe_drain(pipe);
}

const struct way way_single = {
    .name = "ZADD and ZRANK per join",
    .what = "What most projects do for a join: one ZADD NX, then ZRANK to answer with the place. "
            "Pipelined as all others here, although a web server that handles requests one by one "
            "does not.",
    .source = "user-queue-system, https://github.com/bmcho/user-queue-system",
    .open = limit_open,
    .close = limit_close,
    .setup = limit_setup,
    .join = single_join,
};

/* ---- a stream entry per join, for comparison ---- */

static void stream_join(void *actor, uint64_t first, uint64_t n)
{
    struct pipe *pipe = actor;
    for (uint64_t i = 0; i < n; i++) {
        pipe_begin(pipe, "XADD", "joins");
        tl_args_strs(&pipe->args, "*", "d", NULL);
        pipe_visitor(pipe, first + i);
        pipe_send(pipe, PIPE_SINGLE);
    }
    pipe_drain(pipe);
}

const struct way way_stream = {
    .name = "plain XADD",
    .what = "One stream entry per join, and no line at all: what it costs to put joins one by one "
            "into a stream in front of it.",
    .source = "Redis documentation, Streams, https://redis.io/docs/data-types/streams/",
    .open = limit_open,
    .close = limit_close,
    .setup = limit_setup,
    .join = stream_join,
};
