/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which waiting visitors of a queue were seen since the last flush, sent as SEEN commands. Flushes
 * happen at a fixed interval. A flush hands over each seq at most once, as runs, a bounded number
 * at a time. When no visitor was seen it hands over one run of count 0: the expirer must know that
 * presence was observed at all.
 */
#ifndef TL_PRESENCE_H
#define TL_PRESENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/line/order.h"
#include "common/wire/place.h"
#include "worker/feed/outbox.h"

/* Written in presence.c only. Zeroed, with an outbox: nobody was seen. */
struct tl_presence {
    struct tl_outbox *outbox; /* borrowed */
    struct tl_order seen;     /* since the current flush began */
    struct tl_order flushing; /* what the current flush hands over */
    uint64_t cursor;          /* seqs below it have been handed over */
    bool in_progress;
    bool empty; /* the current flush has no visitors */
    int64_t next_ms;
    uint64_t batch; /* the last one with presence in it; 0: none was sent */
    bool farewell;  /* no presence is sent any more */
};

/* Marks a visitor as seen. Without memory the mark is lost; the next poll marks again. */
void tl_presence_mark(struct tl_presence *presence, uint64_t seq);
/* Forgets who was seen, after the queue was created again; frees its memory. */
void tl_presence_forget(struct tl_presence *presence);
/* Call every tick while the store is up: sends what is due. waiting: does anyone wait? */
void tl_presence_tick(struct tl_presence *presence, int64_t waiting_ttl_ms, bool waiting,
                      int64_t now_ms);
/* Sends the rest, and a farewell if anything was ever sent; nothing from then on. False when there
 * was no memory for the farewell. */
bool tl_presence_farewell(struct tl_presence *presence);

#endif
