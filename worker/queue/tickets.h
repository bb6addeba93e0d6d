/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What tickets are worth to a queue: their places may have been lost by the store, may have come
 * back under another name, or been handed over to another device. The queue needs a line.
 *
 * Each hand-over gives a place a higher serial; a ticket with a lower one does not count any more
 * (common/store/line/visitor.lua).
 *
 * now_ms is local monotonic time.
 */
#ifndef TL_TICKETS_H
#define TL_TICKETS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/auth/ticket.h"
#include "common/line/line.h"
#include "worker/queue/queue.h"

/* What a ticket is worth, in the order in which it is asked. */
enum tl_worth {
    TL_WORTH_PENDING,    /* its place has no number yet */
    TL_WORTH_AHEAD,      /* of a later generation, of which this process has yet to learn */
    TL_WORTH_MAY_RETURN, /* the store has lost its place, which can come back */
    TL_WORTH_VOID,       /* of another generation, whose places do not come back */
    TL_WORTH_MOVED,      /* its place is on another device now */
    TL_WORTH_WAITS,
    TL_WORTH_ACTIVE,
    TL_WORTH_OVER,      /* its place has ended */
    TL_WORTH_FORGOTTEN, /* nobody knows of its place, nor does the store */
    TL_WORTH_ASK_STORE, /* only the store can tell */
};

/* Judges the ticket, and makes it one of the present place (tl_queue_adopt). *state: of that place;
 * UNKNOWN where it is not asked for. A ticket with a higher serial than the line knows proves a
 * hand-over that the store has lost, and so does the line of before a loss: notes it, and tells the
 * store. */
enum tl_worth tl_queue_worth(struct tl_queue *queue, struct tl_ticket *ticket, int64_t now_ms,
                             struct tl_line_view *state);

/* ---- the questions it asks ---- */

/* Is the ticket of another generation of the queue? (A pending ticket is of none.) */
bool tl_queue_outdated(const struct tl_queue *queue, const struct tl_ticket *ticket);
/* If the ticket is of the lost generation and its place has come back, or of before a draw, or its
 * visitor was moved to another lane: makes it one of the present place, marked as outdated, and
 * returns true. */
bool tl_queue_adopt(const struct tl_queue *queue, struct tl_ticket *ticket);
/* Is the ticket of a later generation, of which this process has yet to learn? */
bool tl_queue_behind(struct tl_queue *queue, const struct tl_ticket *ticket, int64_t now_ms);
/* Is the place of this ticket lost, and can it come back, as far as is known? It is of another
 * generation, or the store has lost the end of this one. */
bool tl_queue_may_return(const struct tl_queue *queue, const struct tl_ticket *ticket);
/* Did the store lose this place, and say that it does not come back? */
bool tl_queue_lost(const struct tl_queue *queue, tl_place place);
/* Asks the store for the place, which may return. deadline_ms, event: of the session that a pass
 * tells of, or 0. NULL when out of memory, or when the store is down. */
struct tl_pending_command *tl_queue_restore(struct tl_queue *queue, const struct tl_ticket *ticket,
                                            uint64_t deadline_ms, uint64_t event);

/* The serial that tickets of this place have to have, by the line or by that of before a loss; 0:
 * any has. */
uint32_t tl_queue_serial(const struct tl_queue *queue, tl_place place);

#endif
