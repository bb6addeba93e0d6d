/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/queue/queue.h"

enum {
    INTERVAL_MIN_MS = 100,
    RUNS_MAX = 500 /* most runs added to the outbox in one tick */
};

void tl_presence_mark(struct tl_presence *presence, uint64_t seq)
{
    (void)tl_order_insert(&presence->seen, seq, 1);
}

/* Milliseconds between flushes. */
static int64_t interval_of(int64_t waiting_ttl_ms)
{
    int64_t interval = waiting_ttl_ms / 8;
    return interval > INTERVAL_MIN_MS ? interval : INTERVAL_MIN_MS;
}

/* Starts a flush when one is due: the interval is over, and visitors were seen or are waiting. True
 * while there are runs to take. */
static bool is_due(struct tl_presence *presence, int64_t now_ms, int64_t interval_ms, bool waiting)
{
    if (presence->in_progress)
        return true;
    bool any = tl_order_count(&presence->seen) > 0;
    if (now_ms < presence->next_ms || (!any && !waiting))
        return false;
    struct tl_order flushed = presence->flushing;
    presence->flushing = presence->seen;
    presence->seen = flushed;
    presence->cursor = 0;
    presence->in_progress = true;
    presence->empty = !any;
    presence->next_ms = now_ms + interval_ms;
    return true;
}

/* Takes the next run of the current flush. False when the flush is done. */
static bool take(struct tl_presence *presence, struct tl_run *run)
{
    if (!presence->in_progress)
        return false;
    uint64_t first;
    if (tl_order_next(&presence->flushing, presence->cursor, &first)) {
        uint64_t past = first + 1;
        while (tl_order_contains(&presence->flushing, past))
            past++;
        *run = (struct tl_run){.first = first, .count = past - first};
        presence->cursor = past;
        return true;
    }
    tl_order_clear(&presence->flushing);
    presence->in_progress = false;
    *run = (struct tl_run){.first = 0, .count = 0};
    bool was_empty = presence->empty;
    presence->empty = false;
    return was_empty;
}

/* ---- sending ---- */

void tl_presence_forget(struct tl_presence *presence)
{
    tl_order_clear(&presence->seen);
    tl_order_clear(&presence->flushing);
    presence->in_progress = presence->empty = false;
    presence->next_ms = 0;
}

static void send_runs(struct tl_presence *presence, size_t most)
{
    struct tl_run run;
    for (size_t i = 0; i < most && take(presence, &run); i++) {
        if (!tl_outbox_seen(presence->outbox, run.first, run.count))
            break;
        presence->batch = tl_outbox_gathering(presence->outbox);
    }
}

void tl_presence_tick(struct tl_presence *presence, int64_t waiting_ttl_ms, bool waiting,
                      int64_t now_ms)
{
    /* A flush waits until the last one was applied, so as not to flood a slow dispatcher. */
    if (presence->farewell || !tl_outbox_settled(presence->outbox, presence->batch) ||
        !is_due(presence, now_ms, interval_of(waiting_ttl_ms), waiting))
        return;
    send_runs(presence, RUNS_MAX);
}

bool tl_presence_farewell(struct tl_presence *presence)
{
    if (presence->farewell)
        return true;
    presence->farewell = true;
    send_runs(presence, SIZE_MAX); /* the rest of a flush in progress */
    if (is_due(presence, INT64_MAX / 2, 0, false))
        send_runs(presence, SIZE_MAX);
    return presence->batch == 0 ||
           tl_outbox_seen(presence->outbox, TL_SEEN_FAREWELL_SEQ, TL_SEEN_FAREWELL_COUNT);
}
