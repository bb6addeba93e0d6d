/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A waiting Sorted Set, an active Set, and a key per token that has a TTL once it is active. A
 * scheduler reads the whole active Set, asks for each member's key, drops the members whose key is
 * gone, and fills up.
 */
#include <stdlib.h>

#include "common/store/reply.h"
#include "token.h"

/* Drops members of the active Set whose key is gone; returns how many. Handles at most `most`. */
static uint64_t expire(void *actor, uint64_t most)
{
    struct pipe *pipe = actor;
    pipe_begin(pipe, "SMEMBERS", "active");
    struct tl_reply *members = pipe_call(pipe);
    size_t n = tl_reply_count(members);
    n = n < most ? n : most;
    for (size_t i = 0; i < n; i++) {
        char key[WAY_ID_LENGTH + 8] = "token:";
        for (size_t k = 0; k < WAY_ID_LENGTH; k++)
            key[6 + k] = tl_reply_text(members, i)[k];
        pipe_begin(pipe, "EXISTS", key);
        pipe_send(pipe, n + 1);
    }
    bool *alive = calloc(n + 1, sizeof(*alive));
    if (alive == NULL)
        way_die("out of memory");
    for (size_t i = 0; i < n; i++) {
        struct tl_reply *reply = pipe_next(pipe);
        alive[i] = tl_reply_integer(reply) == 1;
        tl_reply_free(reply);
    }
    uint64_t gone = 0;
    pipe_begin(pipe, "SREM", "active");
    for (size_t i = 0; i < n; i++) {
        if (!alive[i]) {
            tl_args_str(&pipe->args, tl_reply_text(members, i));
            gone++;
        }
    }
    if (gone > 0)
        tl_reply_free(pipe_call(pipe));
    free(alive);
    tl_reply_free(members);
    return gone;
}

static int64_t counted(void *actor)
{
    return pipe_ask(actor, "SCARD", "active", NULL);
}

static uint64_t admit(void *actor)
{
    expire(actor, UINT64_MAX);
    uint64_t active = (uint64_t)counted(actor);
    return active < WAY_CAPACITY ? token_activate(actor, WAY_CAPACITY - active, "active") : 0;
}

const struct way way_token_key = {
    .name = "active Set, key per token",
    .what =
        "Waiting Sorted Set, active Set, and a key per token with a TTL; the scheduler asks for "
        "the key of every member of the active Set, drops those whose key is gone, and fills up.",
    .source = "hhplus_3week_ticketing, description of its Redis queue, "
              "https://github.com/vivalahm/hhplus_3week_ticketing (its page on the Redis queue)",
    .open = limit_open,
    .close = limit_close,
    .setup = limit_setup,
    .join = token_join,
    .positions = limit_positions,
    .admit = admit,
    .expire = expire,
    .restart = limit_restart,
    .counted = counted,
};
