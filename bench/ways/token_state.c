/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The active state lives inside the token: a key per visitor whose value says WAITING or ACTIVE,
 * with a TTL once it is active. Who is active is found by a SCAN over all token keys.
 *
 * Kept from the design: every count reads every token. Made as well as it can be: pages of 1,000
 * keys, their values by one MGET a page. The end of a session is Redis's own doing; the next count
 * notices.
 */
#include <stdlib.h>
#include <string.h>

#include "common/store/reply.h"
#include "token.h"

/* Reads one page's values; returns how many are active. */
static int64_t count_page(struct pipe *pipe, const struct tl_reply *keys)
{
    int64_t active = 0;
    if (tl_reply_count(keys) == 0)
        return 0;
    pipe_begin(pipe, "MGET", NULL);
    for (size_t i = 0; i < tl_reply_count(keys); i++)
        tl_args_str(&pipe->args, tl_reply_text(keys, i));
    struct tl_reply *values = pipe_call(pipe);
    for (size_t i = 0; i < tl_reply_count(values); i++) {
        const char *value = tl_reply_text(values, i);
        active += value != NULL && strcmp(value, "ACTIVE") == 0;
    }
    tl_reply_free(values);
    return active;
}

static int64_t counted(void *actor)
{
    struct pipe *pipe = actor;
    int64_t active = 0;
    char cursor[24] = "0";
    do {
        pipe_begin(pipe, "SCAN", cursor);
        tl_args_strs(&pipe->args, "MATCH", "token:*", "COUNT", "1000", NULL);
        struct tl_reply *page = pipe_call(pipe);
        strncpy(cursor, tl_reply_text(page, 0), sizeof(cursor) - 1);
        active += count_page(pipe, tl_reply_at(page, 1));
        tl_reply_free(page);
    } while (strcmp(cursor, "0") != 0);
    return active;
}

static uint64_t admit(void *actor)
{
    uint64_t active = (uint64_t)counted(actor);
    return active < WAY_CAPACITY ? token_activate(actor, WAY_CAPACITY - active, NULL) : 0;
}

/* Redis drops the keys; what has to be done is to count again. */
static uint64_t expire(void *actor, uint64_t most)
{
    (void)most;
    (void)counted(actor);
    return 0;
}

const struct way way_token_state = {
    .name = "state in the token, SCAN",
    .what = "A key per visitor with the state in its value and a TTL once active; who is active is "
            "counted by a SCAN of all keys. Order in a Sorted Set.",
    .source = "ticketon-DDD, list of known queue problems (\"SCAN every second\"), "
              "https://github.com/omegafrog/ticketon-DDD/blob/main/docs/platform/common/todo.md; "
              "counting keys also in upstash/waiting-room, https://github.com/upstash/waiting-room",
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
