/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/queue/lost.h"

enum {
    FRESH_S = 3600, /* a ticket names the lost generation if it was issued so shortly before */
    REFUSED_MAX = 100000, /* places remembered, of each kind */
    NEWS_MS = 10000       /* in which a worker learns that a queue was created again, and more */
};

void tl_lost_clear(struct tl_lost *lost)
{
    tl_line_free(&lost->line);
    tl_placemap_clear(&lost->refused);
    tl_placemap_clear(&lost->elsewhere);
    tl_placemap_clear(&lost->longer);
}

void tl_lost_set(struct tl_lost *lost, const struct tl_recovery *recovery)
{
    const uint64_t named = lost->known.lost_generation;
    if (recovery->present != lost->known.present) {
        tl_placemap_clear(&lost->refused);
        tl_placemap_clear(&lost->longer);
        lost->named = false;
        lost->former = lost->known.draw;
        lost->former_generation = lost->known.present;
    }
    lost->known = *recovery;
    if (recovery->lost_generation >= named)
        lost->named = false;
    else if (lost->named)
        lost->known.lost_generation = named;
    if (!tl_lost_recovering(lost))
        tl_line_free(&lost->line);
}

void tl_lost_keep(struct tl_lost *lost, struct tl_line *line, bool may_name)
{
    const uint64_t generation = line->generation;
    tl_line_free(&lost->line);
    if (may_name && generation < lost->known.present && generation > lost->known.lost_generation) {
        lost->known.lost_generation = generation;
        lost->named = true;
    }
    if (tl_lost_recovering(lost) && tl_lost_is(lost, generation))
        lost->line = line;
    else
        tl_line_free(&line);
}

/* ---- sessions of the lost end of the history ---- */

/* The session at this place of the line lasts until then, at least. False if it does already. */
static bool lengthen(struct tl_lost *lost, struct tl_line *line, tl_place place,
                     int64_t deadline_ms)
{
    struct tl_line_view now = tl_line_look(line, place);
    if (now.status != TL_LINE_ACTIVE || now.deadline_ms >= deadline_ms)
        return false;
    /* Without memory the session ends when the store says. */
    (void)tl_line_add_active(line, place, deadline_ms);
    (void)tl_placemap_put(&lost->longer, place, (uint64_t)deadline_ms);
    lost->untold = true;
    return true;
}

void tl_lost_keep_sessions(struct tl_lost *lost, const struct tl_line *former, struct tl_line *line)
{
    const struct tl_placemap_entry *active;
    if (former == NULL || former->base_seq == line->base_seq)
        return;
    tl_placemap_clear(&lost->longer);
    lost->longer_generation = former->generation;
    lost->longer_event = former->event;
    for (size_t i = 0; (active = tl_placemap_next(&former->active, &i)) != NULL;)
        (void)lengthen(lost, line, active->place, (int64_t)active->value);
}

void tl_lost_keep_pass(struct tl_lost *lost, struct tl_line *line, tl_place place,
                       int64_t deadline_ms, uint64_t event)
{
    /* The line knows of all after the event, unless there is another incarnation. */
    if (line->base_seq == 0 || event > line->event || !lengthen(lost, line, place, deadline_ms))
        return;
    if (event > lost->longer_event || lost->longer_generation != line->generation)
        lost->longer_event = event;
    lost->longer_generation = line->generation;
}

/* ---- telling the store ---- */

static void tell(struct tl_outbox *outbox, enum tl_command_kind kind,
                 const uint64_t numbers[TL_PENDING_NUMBERS])
{
    (void)tl_outbox_command(outbox, kind, "", 0, numbers);
}

/* Of an active place until when its session lasts; of the front of a lane 0. */
static void tell_called(struct tl_outbox *outbox, const struct tl_line *line, tl_place place,
                        uint64_t deadline_ms)
{
    tell(outbox, TL_COMMAND_CALLED,
         (const uint64_t[TL_PENDING_NUMBERS]){line->generation, line->event, place, deadline_ms});
}

void tl_lost_tell(const struct tl_lost *lost, struct tl_outbox *outbox)
{
    const struct tl_line *line = lost->line;
    const struct tl_placemap_entry *active;
    if (!tl_lost_recovering(lost))
        return;
    if (line == NULL) { /* nothing before the present generation: only that there is a worker */
        tell(outbox, TL_COMMAND_LOST, (const uint64_t[TL_PENDING_NUMBERS]){lost->known.present});
        return;
    }
    tell(outbox, TL_COMMAND_LOST,
         (const uint64_t[TL_PENDING_NUMBERS]){line->generation, line->event, line->last_seq,
                                              tl_line_waiting(line) + tl_line_active(line)});
    for (unsigned lane = 0; lane < TL_LANES_MAX; lane++) {
        uint64_t front = tl_line_front(line, lane);
        if (front > 0)
            tell_called(outbox, line, tl_place_make(lane, front), 0);
    }
    for (size_t i = 0; (active = tl_placemap_next(&line->active, &i)) != NULL;)
        tell_called(outbox, line, active->place, active->value);
}

void tl_lost_settled(struct tl_lost *lost, const struct tl_pending_command *pending,
                     const struct tl_pending_result *result)
{
    bool tells = pending->kind == TL_COMMAND_LOST || pending->kind == TL_COMMAND_CALLED;
    if (tells && result->end != TL_PENDING_APPLIED) {
        lost->untold = true;
    } else if (pending->kind == TL_COMMAND_CALLED &&
               pending->numbers[0] == lost->longer_generation) {
        uint64_t deadline_ms;
        if (tl_placemap_get(&lost->longer, pending->numbers[2], &deadline_ms) &&
            deadline_ms == pending->numbers[3])
            (void)tl_placemap_remove(&lost->longer, pending->numbers[2], NULL);
    } else if (pending->kind == TL_COMMAND_LOST && result->outcome == TL_OUTCOME_GONE &&
               lost->line != NULL && lost->line->generation == pending->numbers[0]) {
        lost->named = lost->named && !tl_lost_is(lost, pending->numbers[0]);
        tl_line_free(&lost->line);
    }
}

void tl_lost_tell_again(struct tl_lost *lost, struct tl_outbox *outbox)
{
    if (!lost->untold)
        return;
    lost->untold = false;
    tl_lost_tell(lost, outbox);
    const struct tl_placemap_entry *longer;
    for (size_t i = 0; (longer = tl_placemap_next(&lost->longer, &i)) != NULL;)
        tell(outbox, TL_COMMAND_CALLED,
             (const uint64_t[TL_PENDING_NUMBERS]){lost->longer_generation, lost->longer_event,
                                                  longer->place, longer->value});
}

/* The place to which the visitor of this ticket returns: another one than it names, where this
 * process remembers that the visitor was moved to another lane. */
static tl_place place_of(const struct tl_lost *lost, const struct tl_ticket *ticket)
{
    if (lost->line == NULL || lost->line->generation != ticket->generation)
        return ticket->place;
    return tl_line_find(lost->line, ticket->place);
}

struct tl_pending_command *tl_lost_ask(const struct tl_lost *lost, struct tl_outbox *outbox,
                                       const struct tl_ticket *ticket, uint64_t deadline_ms,
                                       uint64_t event)
{
    const tl_place place = place_of(lost, ticket);
    const uint32_t serial = tl_lost_serial(lost, place);
    struct tl_pending_command *pending =
        tl_outbox_command(outbox, TL_COMMAND_RESTORE, ticket->visitor, place,
                          (const uint64_t[TL_PENDING_NUMBERS]){ticket->generation, deadline_ms,
                                                               ticket->front, event});
    if (serial > 0) /* an old ticket, or a pass, brings it back to the device that had it last */
        (void)tl_outbox_command(outbox, TL_COMMAND_HAND_OVER, ticket->visitor, place,
                                (const uint64_t[TL_PENDING_NUMBERS]){serial});
    return pending;
}

/* ---- what is known ---- */

bool tl_lost_recovering(const struct tl_lost *lost)
{
    return lost->known.until_ms != 0 || lost->named;
}

bool tl_lost_is(const struct tl_lost *lost, uint64_t generation)
{
    return generation != 0 && generation == lost->known.lost_generation;
}

bool tl_lost_ahead(struct tl_lost *lost, uint64_t present, const struct tl_ticket *ticket,
                   int64_t now_ms)
{
    if (tl_place_seq(ticket->place) == 0 || ticket->generation <= present)
        return false;
    if (lost->ahead_of != present) {
        lost->ahead_of = present;
        lost->ahead_ms = now_ms;
    }
    return tl_lost_recovering(lost) || now_ms - lost->ahead_ms < NEWS_MS;
}

uint32_t tl_lost_serial(const struct tl_lost *lost, tl_place place)
{
    return lost->line != NULL ? tl_line_serial(lost->line, place) : 0;
}

/* Was a place up to this seq given before the draw, which has begun? */
static bool is_before(const struct tl_draw_record *draw, uint64_t seq, uint64_t last)
{
    return draw->phase >= TL_DRAW_DRAWING && seq != 0 && seq <= last;
}

bool tl_lost_ended(const struct tl_lost *lost, uint64_t generation, tl_place place)
{
    if (lost->line == NULL || lost->line->generation != generation)
        return false;
    enum tl_line_status status = tl_line_look(lost->line, tl_line_find(lost->line, place)).status;
    if (status == TL_LINE_UNKNOWN && generation == lost->former_generation &&
        is_before(&lost->former, tl_place_seq(place), lost->former.cut))
        return false; /* drawn to another place, which may wait */
    return status == TL_LINE_ENDED ||
           (status == TL_LINE_UNKNOWN && tl_place_seq(place) <= lost->line->last_seq);
}

/* Nobody has named the lost generation yet, or an earlier one: a ticket does if it was issued
 * shortly before the present one began. */
static bool may_name(const struct tl_lost *lost, const struct tl_ticket *ticket)
{
    int64_t began_s = (int64_t)(lost->known.present / 1000000);
    return ticket->generation > lost->known.lost_generation &&
           ticket->generation < lost->known.present &&
           tl_ticket_age_s(ticket, began_s + 60) <= FRESH_S + 60;
}

bool tl_lost_refused(const struct tl_lost *lost, tl_place place)
{
    uint64_t generation;
    return tl_placemap_get(&lost->refused, place, &generation);
}

bool tl_lost_may_return(const struct tl_lost *lost, const struct tl_ticket *ticket)
{
    if (tl_place_seq(ticket->place) == 0 || tl_lost_refused(lost, ticket->place) ||
        tl_lost_ended(lost, ticket->generation, ticket->place))
        return false;
    return (tl_lost_before_draw(lost, ticket->place) && tl_lost_is(lost, ticket->generation)) ||
           (tl_lost_recovering(lost) && tl_lost_is(lost, ticket->generation)) ||
           may_name(lost, ticket);
}

/* Remembers something of a place; the map is emptied when it is full. */
static void remember(struct tl_placemap *map, tl_place place, uint64_t value)
{
    if (map->count >= REFUSED_MAX)
        tl_placemap_clear(map);
    (void)tl_placemap_put(map, place, value); /* else the store is asked again */
}

void tl_lost_answered(struct tl_lost *lost, uint64_t generation, tl_place place, bool returned,
                      tl_place found)
{
    if (found != 0) { /* whatever was said of that place before is out of date: no circle */
        (void)tl_placemap_remove(&lost->elsewhere, found, NULL);
        remember(&lost->elsewhere, place, found);
        return;
    }
    if (returned) {
        if (generation > lost->known.lost_generation && generation != lost->known.present) {
            lost->known.lost_generation = generation;
            lost->named = true;
        }
        return;
    }
    remember(&lost->refused, place, generation);
}

uint64_t tl_lost_origin(const struct tl_lost *lost, uint64_t present, tl_place place)
{
    /* Where the seqs of the present generation began; less a millisecond, because the store counts
     * whole ones. */
    double first = ((double)present / 1000 - (double)TL_SEQ_EPOCH_MS - 1) * TL_SEQ_PER_MS;
    if (lost->known.draw.phase != TL_DRAW_NONE && tl_place_seq(place) > lost->known.draw.last)
        first += TL_DRAW_ROOM; /* a latecomer, here or there */
    bool before = lost->known.lost_generation != 0 && (double)tl_place_seq(place) < first;
    return before ? lost->known.lost_generation : present;
}

/* ---- the draw ---- */

bool tl_lost_undrawn(const struct tl_lost *lost, const struct tl_queue_settings *settings,
                     uint64_t event)
{
    const struct tl_draw_record *draw = &lost->known.draw;
    return settings->order == TL_ORDER_DRAW && (draw->phase != TL_DRAW_DONE || event < draw->event);
}

bool tl_lost_before_draw(const struct tl_lost *lost, tl_place place)
{
    uint64_t seq = tl_place_seq(place);
    return is_before(&lost->known.draw, seq, lost->known.draw.last) ||
           (tl_lost_is(lost, lost->former_generation) &&
            is_before(&lost->former, seq, lost->former.last));
}

bool tl_lost_follow(const struct tl_lost *lost, struct tl_ticket *ticket)
{
    uint64_t place = ticket->place;
    if (ticket->generation != lost->known.present && !tl_lost_is(lost, ticket->generation))
        return false;
    /* To the place before the draw, and from there to the one after it. */
    while (tl_placemap_get(&lost->elsewhere, place, &place))
        continue;
    bool found = place != ticket->place;
    ticket->place = place;
    return found;
}
