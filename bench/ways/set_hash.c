/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An active Set, and, because its members can have no TTL, a Hash with everyone's end beside it.
 * Two schedulers: one counts the Set and fills it up, the other reads the whole Hash for what is
 * overdue.
 *
 * Kept from the design: the full scan of the Hash, and two schedulers that know nothing of each
 * other. Made as well as it can be: the Hash holds active visitors only (with waiting ones in it
 * too, the scan would read the whole line), and both run at once when there is something to do;
 * their fixed period (1 to 5 s in what we read) would on average add half of it to each figure.
 */
#include <stdlib.h>
#include <string.h>

#include "common/store/reply.h"
#include "limit.h"

static int64_t counted(void *actor)
{
    return pipe_ask(actor, "SCARD", "active", NULL);
}

/* Adds a command "name key id..." of the visitors in a ZPOPMIN or HSCAN reply, every second one. */
static void send_ids(struct pipe *pipe, const char *name, const char *key,
                     const struct tl_reply *pairs, size_t n)
{
    pipe_begin(pipe, name, key);
    for (size_t i = 0; i < n; i++)
        tl_args_str(&pipe->args, tl_reply_text(pairs, 2 * i));
    pipe_send(pipe, PIPE_SINGLE);
}

static uint64_t admit(void *actor)
{
    struct pipe *pipe = actor;
    uint64_t active = (uint64_t)counted(pipe);
    if (active >= WAY_CAPACITY)
        return 0;
    int64_t end = pipe_now_ms(pipe) + WAY_TTL_MS;
    struct tl_reply *called = line_pop(pipe, WAY_CAPACITY - active);
    size_t n = tl_reply_count(called) / 2;
    if (n > 0) {
        send_ids(pipe, "SADD", "active", called, n);
        pipe_begin(pipe, "HSET", "ends");
        for (size_t i = 0; i < n; i++) {
            tl_args_str(&pipe->args, tl_reply_text(called, 2 * i));
            tl_args_int(&pipe->args, end);
        }
        pipe_send(pipe, PIPE_SINGLE);
    }
    pipe_drain(pipe);
    tl_reply_free(called);
    return n;
}

/* Ends what is overdue on one page of the Hash: [id, end, id, end...]. */
static uint64_t expire_page(struct pipe *pipe, const struct tl_reply *page, int64_t now_ms,
                            uint64_t most)
{
    uint64_t n = 0;
    for (size_t i = 0; i + 1 < tl_reply_count(page) && n < most; i += 2) {
        const char *id = tl_reply_text(page, i);
        if (tl_reply_signed(page, i + 1) > now_ms)
            continue;
        pipe_begin(pipe, "SREM", "active");
        tl_args_str(&pipe->args, id);
        pipe_send(pipe, PIPE_SINGLE);
        pipe_begin(pipe, "HDEL", "ends");
        tl_args_str(&pipe->args, id);
        pipe_send(pipe, PIPE_SINGLE);
        n++;
    }
    pipe_drain(pipe);
    return n;
}

static uint64_t expire(void *actor, uint64_t most)
{
    struct pipe *pipe = actor;
    int64_t now_ms = pipe_now_ms(pipe);
    uint64_t ended = 0;
    char cursor[24] = "0";
    do {
        pipe_begin(pipe, "HSCAN", "ends");
        tl_args_strs(&pipe->args, cursor, "COUNT", "1000", NULL);
        struct tl_reply *reply = pipe_call(pipe);
        strncpy(cursor, tl_reply_text(reply, 0), sizeof(cursor) - 1);
        ended += expire_page(pipe, tl_reply_at(reply, 1), now_ms, most - ended);
        tl_reply_free(reply);
    } while (strcmp(cursor, "0") != 0 && ended < most);
    return ended;
}

const struct way way_set_hash = {
    .name = "Set and Hash, two schedulers",
    .what =
        "Active Set for counting, a Hash with the end of each session; one scheduler fills up, a "
        "second reads the whole Hash for what is overdue. Order in a Sorted Set.",
    .source = "concert-reservation, Redis implementation guide (Sorted Set, Hashes, a scheduler), "
              "https://github.com/Seulah-coder/concert-reservation/blob/main/"
              "REDIS_IMPLEMENTATION_GUIDE.md; active Set and two schedulers as in "
              "https://chagokchagok-dev-story.tistory.com/m/56",
    .open = limit_open,
    .close = limit_close,
    .setup = limit_setup,
    .join = limit_join,
    .positions = limit_positions,
    .admit = admit,
    .expire = expire,
    .restart = limit_restart,
    .counted = counted,
};
