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

void tl_presence_forget(struct tl_presence *presence)
{
    tl_order_clear(&presence->seen);
    tl_order_clear(&presence->flushing);
    presence->in_progress = false;
    presence->next_ms = 0;
}

/* Sends a run. False without memory: it is lost. */
static bool send_run(struct tl_presence *presence, uint64_t first, uint64_t count)
{
    if (!tl_outbox_seen(presence->outbox, first, count))
        return false;
    presence->batch = presence->outbox->next_number;
    return true;
}

/* Begins a flush of those seen; the last one is over. */
static void begin(struct tl_presence *presence)
{
    presence->flushing = presence->seen;
    presence->seen = (struct tl_order){0};
    presence->cursor = 0;
    presence->in_progress = true;
}

/* Sends the next runs of the flush in progress, at most RUNS_MAX. */
static void send_runs(struct tl_presence *presence, size_t most)
{
    uint64_t first;
    bool sent = true;
    for (size_t i = 0; sent && presence->in_progress && i < most; i++) {
        if (!tl_order_next(&presence->flushing, presence->cursor, &first)) {
            tl_order_clear(&presence->flushing);
            presence->in_progress = false;
            return;
        }
        presence->cursor = first + 1;
        while (tl_order_contains(&presence->flushing, presence->cursor))
            presence->cursor++;
        sent = send_run(presence, first, presence->cursor - first);
    }
}

void tl_presence_tick(struct tl_presence *presence, int64_t waiting_ttl_ms, bool waiting,
                      int64_t now_ms)
{
    /* A flush waits until the last one was applied, so as not to flood a slow dispatcher. */
    if (presence->farewell || !tl_outbox_settled(presence->outbox, presence->batch))
        return;
    if (!presence->in_progress) {
        const bool any = presence->seen.count > 0;
        if (now_ms < presence->next_ms || (!any && !waiting))
            return;
        presence->next_ms = now_ms + interval_of(waiting_ttl_ms);
        if (any)
            begin(presence);
        else
            (void)send_run(presence, 0, 0);
    }
    send_runs(presence, RUNS_MAX);
}

bool tl_presence_farewell(struct tl_presence *presence)
{
    if (presence->farewell)
        return true;
    presence->farewell = true;
    send_runs(presence, SIZE_MAX); /* the rest of a flush in progress */
    if (!presence->in_progress && presence->seen.count > 0)
        begin(presence);
    send_runs(presence, SIZE_MAX);
    return presence->batch == 0 ||
           tl_outbox_seen(presence->outbox, TL_SEEN_FAREWELL_SEQ, TL_SEEN_FAREWELL_COUNT);
}
