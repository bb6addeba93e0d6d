/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two Sorted Sets, waiting and active, and a position found by reading the waiting one from front
 * to back.
 *
 * Kept from the design: the whole range is read and searched for every look-up; visitors are moved
 * one by one. Where such a system reads the range once a second and then still asks ZRANK for each
 * visitor, it costs more than this.
 */
#include <string.h>

#include "common/store/reply.h"
#include "limit.h"

static uint64_t rank_in(const struct tl_reply *members, uint64_t visitor)
{
    char id[WAY_ID_LENGTH + 1];
    way_visitor(visitor, id);
    for (size_t i = 0; i < tl_reply_count(members); i++) {
        if (memcmp(tl_reply_text(members, i), id, WAY_ID_LENGTH) == 0)
            return i + 1;
    }
    return 0;
}

static void positions(void *actor, const uint64_t *visitors, size_t n, uint64_t *answers)
{
    struct pipe *pipe = actor;
    for (size_t i = 0; i < n; i++) {
        pipe_begin(pipe, "ZRANGE", "waiting");
        tl_args_strs(&pipe->args, "0", "-1", NULL);
        struct tl_reply *members = pipe_call(pipe);
        answers[i] = rank_in(members, visitors[i]);
        tl_reply_free(members);
    }
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
    for (uint64_t i = 0; i < n; i++) {
        pipe_begin(pipe, "ZADD", "active");
        tl_args_int(&pipe->args, deadline);
        tl_args_str(&pipe->args, tl_reply_text(called, 2 * i));
        pipe_send(pipe, PIPE_SINGLE);
    }
    tl_reply_free(called);
    pipe_drain(pipe);
    return n;
}

const struct way way_range_scan = {
    .name = "sorted sets, range scan",
    .what = "Sorted Sets for waiting and active; a position is found by reading the whole waiting "
            "range; visitors are moved one by one.",
    .source =
        "ticketon-DDD, list of known queue problems (\"reads the whole ZSET every second\"), "
        "https://github.com/omegafrog/ticketon-DDD/blob/main/docs/platform/common/todo.md; two "
        "sets as in user-queue-system, https://github.com/bmcho/user-queue-system",
    .open = limit_open,
    .close = limit_close,
    .setup = limit_setup,
    .join = limit_join,
    .positions = positions,
    .admit = admit,
    .expire = limit_expire,
    .restart = limit_restart,
    .counted = limit_counted,
};
