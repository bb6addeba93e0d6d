/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/queue/queue.h"

/* ---- places that come back after a loss ---- */

bool tl_queue_outdated(const struct tl_queue *queue, const struct tl_ticket *ticket)
{
    return tl_place_seq(ticket->place) != 0 && ticket->generation != queue->line->generation;
}

bool tl_queue_adopt(const struct tl_queue *queue, struct tl_ticket *ticket)
{
    const struct tl_line *line = queue->line;
    const uint64_t present = line->generation;
    if (tl_place_seq(ticket->place) == 0 ||
        (ticket->generation != present && !tl_lost_is(&queue->lost, ticket->generation)))
        return false;
    const bool elsewhere = tl_lost_follow(&queue->lost, ticket);
    const tl_place place = tl_line_find(line, ticket->place);
    const bool is_present = ticket->generation == present && !elsewhere;
    if (is_present ? place == ticket->place : tl_line_look(line, place).status == TL_LINE_UNKNOWN)
        return false;
    ticket->generation = present;
    ticket->place = place;
    ticket->outdated = true;
    return true;
}

bool tl_queue_behind(struct tl_queue *queue, const struct tl_ticket *ticket, int64_t now_ms)
{
    return tl_lost_ahead(&queue->lost, queue->line->generation, ticket, now_ms);
}

/* The same for a place of the present generation, in this state. */
static bool is_lost(const struct tl_queue *queue, tl_place place, const struct tl_line_view *state)
{
    return state->status == TL_LINE_UNKNOWN &&
           (tl_line_lost(queue->line, place) || tl_lost_before_draw(&queue->lost, place)) &&
           !tl_lost_refused(&queue->lost, place);
}

bool tl_queue_may_return(const struct tl_queue *queue, const struct tl_ticket *ticket)
{
    bool known;
    if (ticket->generation != queue->line->generation)
        return tl_lost_may_return(&queue->lost, ticket);
    const struct tl_line_view state = tl_queue_look(queue, ticket->place, &known);
    return is_lost(queue, ticket->place, &state);
}

bool tl_queue_lost(const struct tl_queue *queue, tl_place place)
{
    return tl_line_lost(queue->line, place) && tl_lost_refused(&queue->lost, place);
}

struct tl_pending_command *tl_queue_restore(struct tl_queue *queue, const struct tl_ticket *ticket,
                                            uint64_t deadline_ms, uint64_t event)
{
    if (!tl_queue_env_store_up(queue->env))
        return NULL;
    return tl_lost_ask(&queue->lost, queue->outbox, ticket, deadline_ms, event);
}

/* ---- places that were handed over ---- */

uint32_t tl_queue_serial(const struct tl_queue *queue, tl_place place)
{
    uint32_t now = tl_line_serial(queue->line, place), before = tl_lost_serial(&queue->lost, place);
    return now > before ? now : before;
}

static bool is_held(const struct tl_line_view *state)
{
    return state->status == TL_LINE_WAITING || state->status == TL_LINE_ACTIVE;
}

/* Is the place of this ticket, in this state, on another device now? A ticket with a higher serial
 * than the line knows proves a hand-over that the store has lost, and so does the line from before
 * a loss: notes it, and tells the store. */
static bool is_moved(struct tl_queue *queue, const struct tl_ticket *ticket,
                     const struct tl_line_view *state)
{
    const uint32_t known = tl_queue_serial(queue, ticket->place);
    const uint32_t proven = ticket->serial > known ? ticket->serial : known;
    /* Without memory the next ticket that comes is told. */
    if (proven > tl_line_serial(queue->line, ticket->place) && is_held(state) &&
        tl_line_add_serial(queue->line, ticket->place, proven))
        (void)tl_outbox_command(queue->outbox, TL_COMMAND_HAND_OVER, ticket->visitor, ticket->place,
                                (const uint64_t[TL_PENDING_NUMBERS]){proven});
    return ticket->serial < known;
}

/* ---- both ---- */

enum tl_worth tl_queue_worth(struct tl_queue *queue, struct tl_ticket *ticket, int64_t now_ms,
                             struct tl_line_view *state)
{
    bool known;
    *state = (struct tl_line_view){.status = TL_LINE_UNKNOWN};
    if (tl_place_seq(ticket->place) == 0)
        return TL_WORTH_PENDING;
    (void)tl_queue_adopt(queue, ticket);
    if (tl_queue_outdated(queue, ticket)) {
        if (tl_queue_behind(queue, ticket, now_ms))
            return TL_WORTH_AHEAD;
        return tl_lost_may_return(&queue->lost, ticket) ? TL_WORTH_MAY_RETURN : TL_WORTH_VOID;
    }
    *state = tl_queue_look(queue, ticket->place, &known);
    if (is_lost(queue, ticket->place, state))
        return TL_WORTH_MAY_RETURN;
    if (is_moved(queue, ticket, state))
        return TL_WORTH_MOVED;
    switch (state->status) {
    case TL_LINE_WAITING:
        return TL_WORTH_WAITS;
    case TL_LINE_ACTIVE:
        return TL_WORTH_ACTIVE;
    case TL_LINE_ENDED:
        return TL_WORTH_OVER;
    case TL_LINE_UNKNOWN:
        break;
    }
    return known ? TL_WORTH_FORGOTTEN : TL_WORTH_ASK_STORE;
}
