/* SPDX-License-Identifier: Apache-2.0 */
#include "token.h"
#include "common/store/reply.h"

#include <stdio.h>

static void begin_set(struct pipe *pipe, const char *id, const char *value)
{
    char key[WAY_ID_LENGTH + 8];
    snprintf(key, sizeof(key), "token:%s", id);
    pipe_begin(pipe, "SET", key);
    tl_args_str(&pipe->args, value);
}

void token_join(void *actor, uint64_t first, uint64_t n)
{
    struct pipe *pipe = actor;
    for (uint64_t done = 0; done < n; done += WAY_BATCH) {
        uint64_t batch = n - done < WAY_BATCH ? n - done : WAY_BATCH;
        for (uint64_t i = 0; i < batch; i++) {
            char id[WAY_ID_LENGTH + 1];
            way_visitor(first + done + i, id);
            begin_set(pipe, id, "WAITING");
            pipe_send(pipe, PIPE_SINGLE);
        }
        pipe_begin(pipe, "ZADD", "waiting");
        for (uint64_t i = 0; i < batch; i++) {
            tl_args_uint(&pipe->args, first + done + i);
            pipe_visitor(pipe, first + done + i);
        }
        pipe_send(pipe, PIPE_SINGLE);
    }
    pipe_drain(pipe);
}

uint64_t token_activate(struct pipe *pipe, uint64_t n, const char *set)
{
    struct tl_reply *called = line_pop(pipe, n);
    n = tl_reply_count(called) / 2;
    for (uint64_t i = 0; i < n; i++) {
        begin_set(pipe, tl_reply_text(called, 2 * i), "ACTIVE");
        tl_args_str(&pipe->args, "PX");
        tl_args_int(&pipe->args, WAY_TTL_MS);
        pipe_send(pipe, PIPE_SINGLE);
    }
    if (set != NULL && n > 0) {
        pipe_begin(pipe, "SADD", set);
        for (uint64_t i = 0; i < n; i++)
            tl_args_str(&pipe->args, tl_reply_text(called, 2 * i));
        pipe_send(pipe, PIPE_SINGLE);
    }
    pipe_drain(pipe);
    tl_reply_free(called);
    return n;
}
