/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A counter of the active, raised on admission, lowered by a consumer of a log: every admission is
 * written to the log with its end, and the consumer reads the head of the log again and again until
 * it is due. A Redis stream stands in for Kafka.
 *
 * Kept from the design: the counter is all that counts; the consumer's offset is committed after
 * each poll of up to 500 records (Kafka's default, at least once). Made as well as it can be: all
 * sessions last equally long, so that the head of the log is always the next to end and nothing is
 * put back. (With sessions of different length, records would have to be appended again.)
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/store/reply.h"
#include "limit.h"

#define POLL_RECORDS "500"

static int64_t counted(void *actor)
{
    return pipe_ask(actor, "GET", "count", NULL);
}

static uint64_t admit(void *actor)
{
    struct pipe *pipe = actor;
    uint64_t active = (uint64_t)counted(pipe);
    if (active >= WAY_CAPACITY)
        return 0;
    int64_t end = pipe_now_ms(pipe) + WAY_TTL_MS;
    struct tl_reply *called = line_pop(pipe, WAY_CAPACITY - active);
    uint64_t n = tl_reply_count(called) / 2;
    for (uint64_t i = 0; i < n; i++) {
        pipe_begin(pipe, "XADD", "log");
        tl_args_strs(&pipe->args, "*", "token", tl_reply_text(called, 2 * i), "end", NULL);
        tl_args_int(&pipe->args, end);
        pipe_send(pipe, PIPE_SINGLE);
    }
    tl_reply_free(called);
    pipe_begin(pipe, "INCRBY", "count");
    tl_args_uint(&pipe->args, n);
    pipe_send(pipe, PIPE_SINGLE);
    pipe_drain(pipe);
    return n;
}

/* One poll from the committed offset. Handles at most `most` and is then dead: it commits only when
 * it came to the end of the poll. Returns how many it handled. */
static uint64_t poll_log(struct pipe *pipe, int64_t now_ms, uint64_t most)
{
    char offset[48] = "(0-0";
    pipe_begin(pipe, "GET", "offset");
    struct tl_reply *reply = pipe_call(pipe);
    if (tl_reply_type(reply) == TL_REPLY_STRING)
        snprintf(offset, sizeof(offset), "(%s", tl_reply_string(reply, NULL));
    tl_reply_free(reply);
    pipe_begin(pipe, "XRANGE", "log");
    tl_args_strs(&pipe->args, offset, "+", "COUNT", POLL_RECORDS, NULL);
    struct tl_reply *records = pipe_call(pipe);
    uint64_t n = 0;
    for (; n < tl_reply_count(records) && n < most; n++) {
        const struct tl_reply *record = tl_reply_at(records, n);
        if (tl_reply_signed(tl_reply_at(record, 1), 3) > now_ms)
            break;
        pipe_begin(pipe, "DECR", "count");
        pipe_send(pipe, PIPE_SINGLE);
    }
    pipe_drain(pipe);
    if (n > 0 && n < most) {
        pipe_begin(pipe, "SET", "offset");
        tl_args_str(&pipe->args, tl_reply_text(tl_reply_at(records, n - 1), 0));
        tl_reply_free(pipe_call(pipe));
    }
    tl_reply_free(records);
    return n;
}

static uint64_t expire(void *actor, uint64_t most)
{
    int64_t now_ms = pipe_now_ms(actor);
    uint64_t ended = 0;
    uint64_t n = 1;
    while (n > 0 && ended < most) {
        n = poll_log(actor, now_ms, most - ended);
        ended += n;
    }
    return ended;
}

const struct way way_log = {
    .name = "counter and log",
    .what =
        "A counter raised on admission and lowered by the consumer of a log of ends, which reads "
        "the head of the log again until it is due (a stream in place of Kafka). Order in a "
        "Sorted Set.",
    .source = "A design discussed where Kafka is at hand; no single public source was found. At "
              "least once, offset after 500 records: Kafka's defaults, "
              "https://kafka.apache.org/documentation/#consumerconfigs_max.poll.records",
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
