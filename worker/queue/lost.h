/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a worker knows of the generation of a queue that the store has lost
 * (docs/operators/recovery.md): the last line of it, if this process had one, until the recovery is
 * over; and which places do not come back.
 */
#ifndef TL_LOST_H
#define TL_LOST_H

#include <stdbool.h>
#include <stdint.h>

#include "common/auth/ticket.h"
#include "common/config/config.h"
#include "common/line/line.h"
#include "common/line/placemap.h"
#include "common/store/state.h"
#include "worker/feed/outbox.h"

/* Read everywhere, written in lost.c only. A zeroed one knows nothing. */
struct tl_lost {
    struct tl_recovery known;
    struct tl_line *line;         /* of the former generation, or NULL */
    struct tl_placemap refused;   /* places that do not come back */
    struct tl_placemap elsewhere; /* place -> its visitor's place now, as the store has answered */
    struct tl_placemap
        longer;            /* place -> deadline of a session, of which the store is yet to learn */
    uint64_t longer_event; /* the last one of the line, or pass, that remembered them... */
    uint64_t longer_generation;   /* ...and its generation */
    struct tl_draw_record former; /* the draw of the former generation... */
    uint64_t former_generation;   /* ...which is this one; 0: none is known */
    /* A ticket or this process has named known.lost_generation, which begins a recovery if there
     * was none. What tl_lost_set got is older. */
    bool named;
    bool untold; /* the commands of tl_lost_tell did not reach the store */
    /* When a ticket of a later generation first came, and under which present one. */
    int64_t ahead_ms;
    uint64_t ahead_of;
};

void tl_lost_clear(struct tl_lost *lost); /* frees its memory */

/* What the store says now. */
void tl_lost_set(struct tl_lost *lost, const struct tl_recovery *recovery);
/* The queue has a new line, of another generation: keeps the former one, if its places come back.
 * may_name: this process may begin a recovery; it names the former generation then, unless a later
 * one is named. */
void tl_lost_keep(struct tl_lost *lost, struct tl_line *line, bool may_name);
/* While the queue recovers: tells the store what the former line remembers, or that there is a
 * worker which remembers nothing: without one, the time of the recovery does not pass. */
void tl_lost_tell(const struct tl_lost *lost, struct tl_outbox *outbox);
/* The queue has a new line of the same generation as the former one; NULL: there was none. If it is
 * of another incarnation, the store may have lost the end of its history: sessions that last longer
 * by the former line do so in the new one, too, and the store is told of them (tl_lost_tell_again).
 */
void tl_lost_keep_sessions(struct tl_lost *lost, const struct tl_line *former,
                           struct tl_line *line);
/* A valid pass of the line's generation tells of the session at this place, until this deadline, as
 * of this event: the same, if the line knows an earlier one. */
void tl_lost_keep_pass(struct tl_lost *lost, struct tl_line *line, tl_place place,
                       int64_t deadline_ms, uint64_t event);
/* A command ended. If it failed, the store may not know what it said: tl_lost_tell_again sends that
 * again. Or the store refuses the name of the lost generation. */
void tl_lost_settled(struct tl_lost *lost, const struct tl_pending_command *pending,
                     const struct tl_pending_result *result);
/* Repeats the commands that failed (tl_lost_settled). */
void tl_lost_tell_again(struct tl_lost *lost, struct tl_outbox *outbox);
/* Asks the store for the place of a ticket: for another one than it names, where this process
 * remembers that the visitor was moved to another lane. Tells the serial, too, that the place had,
 * if it is remembered. deadline_ms, event: of the session that a pass tells of, or 0. NULL when out
 * of memory. */
struct tl_pending_command *tl_lost_ask(const struct tl_lost *lost, struct tl_outbox *outbox,
                                       const struct tl_ticket *ticket, uint64_t deadline_ms,
                                       uint64_t event);

/* Does the queue recover? Nobody is admitted then. */
bool tl_lost_recovering(const struct tl_lost *lost);
/* Is this the generation whose places come back? */
bool tl_lost_is(const struct tl_lost *lost, uint64_t generation);
/* Can the place of this ticket come back, as far as this process knows? */
bool tl_lost_may_return(const struct tl_lost *lost, const struct tl_ticket *ticket);
/* Is the ticket of a generation after the present one? Another worker gave it, and the news of that
 * generation is on its way; or the store has come back from before that, and an operator may bring
 * it back while the queue recovers. Else false when the news did not come for some seconds: then
 * the store's clock was set back, and the ticket is of a generation before. */
bool tl_lost_ahead(struct tl_lost *lost, uint64_t present, const struct tl_ticket *ticket,
                   int64_t now_ms);
/* The serial that this place had before the loss, as far as this process knows; 0: none. */
uint32_t tl_lost_serial(const struct tl_lost *lost, tl_place place);
/* Did the session at this place end before the loss, as far as this process knows? */
bool tl_lost_ended(const struct tl_lost *lost, uint64_t generation, tl_place place);
/* Has the store refused this place? */
bool tl_lost_refused(const struct tl_lost *lost, tl_place place);
/* The store's answer about a place of this generation: it came back, or not. `found`: where its
 * visitor is instead, or 0. */
void tl_lost_answered(struct tl_lost *lost, uint64_t generation, tl_place place, bool returned,
                      tl_place found);
/* The generation in which a place of the present line was given. */
uint64_t tl_lost_origin(const struct tl_lost *lost, uint64_t present, tl_place place);

/* ---- places from before a draw, whose visitors have others now ---- */

/* Is the draw to come, or is the line, as of this event, from before it? Then nobody has
 * a position. */
bool tl_lost_undrawn(const struct tl_lost *lost, const struct tl_queue_settings *settings,
                     uint64_t event);
/* Was this place given before the queue's draw, or by a step of it that the store has lost? Also of
 * the draw of the lost generation. */
bool tl_lost_before_draw(const struct tl_lost *lost, tl_place place);
/* If the store has answered that the visitor of this ticket has another place, because of a draw or
 * a lost end of the history: puts that place into the ticket. */
bool tl_lost_follow(const struct tl_lost *lost, struct tl_ticket *ticket);

#endif
