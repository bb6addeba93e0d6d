#include <stdlib.h>

#include "common/base/clock.h"
#include "worker/api/answer.h"
#include "worker/http/problem.h"
#include "worker/queue/hold.h"
#include "worker/report/worker_metrics.h"

static struct tl_holds *list_of(struct tl_edge *edge, const struct tl_hold *hold)
{
    return hold->kind == TL_HOLD_LOOKUP ? &edge->lookups : &edge->holds;
}

static struct tl_hold *hold_new(struct tl_room *room, struct tl_request *request,
                                enum tl_hold_kind kind)
{
    struct tl_edge *edge = room->edge;
    struct tl_hold *hold = calloc(1, sizeof(*hold));
    if (hold == NULL)
        return NULL;
    hold->kind = kind;
    hold->room = room;
    hold->request = request;
    hold->since_us = tl_clock_us();
    hold->deadline_ms = hold->since_us / 1000 + edge->config->http.join_wait_ms;
    struct tl_holds *list = list_of(edge, hold);
    hold->prev = list->last;
    if (list->last != NULL)
        list->last->next = hold;
    else
        list->first = hold;
    list->last = hold;
    list->count++;
    tl_request_hold(request);
    return hold;
}

/* Lets go of the hold and returns its request, which is now to be answered. */
static struct tl_request *release(struct tl_hold *hold)
{
    struct tl_holds *list = list_of(hold->room->edge, hold);
    struct tl_request *request = hold->request;
    if (hold->prev != NULL)
        hold->prev->next = hold->next;
    else
        list->first = hold->next;
    if (hold->next != NULL)
        hold->next->prev = hold->prev;
    else
        list->last = hold->prev;
    list->count--;
    free(hold);
    return request;
}

static void detach(struct tl_hold *hold)
{
    struct tl_hold *first = hold->pending->waiters;
    struct tl_hold **link = &first;
    while (*link != hold)
        link = &(*link)->next_waiter;
    *link = hold->next_waiter;
    hold->pending->waiters = first;
}

bool tl_hold_for_call(struct tl_room *room, struct tl_request *request,
                      struct tl_pending_command *pending, const struct tl_ticket *ticket)
{
    enum tl_hold_kind kind = pending->kind == TL_COMMAND_JOIN ? TL_HOLD_JOIN : TL_HOLD_COMMAND;
    struct tl_hold *hold = hold_new(room, request, kind);
    if (hold == NULL)
        return false;
    if (ticket != NULL)
        hold->ticket = *ticket;
    hold->pending = pending;
    hold->next_waiter = pending->waiters;
    pending->waiters = hold;
    return true;
}

bool tl_hold_for_lookup(struct tl_room *room, struct tl_request *request,
                        const struct tl_ticket *ticket)
{
    struct tl_edge *edge = room->edge;
    uint64_t number = edge->last_lookup + 1;
    if (!tl_ingest_look(edge->ingest, room->name, ticket->visitor, ticket->place, number))
        return false;
    edge->last_lookup = number;
    struct tl_hold *hold = hold_new(room, request, TL_HOLD_LOOKUP);
    if (hold == NULL)
        return false; /* its answer will find nobody */
    hold->ticket = *ticket;
    hold->lookup = number;
    tl_metrics_add(edge->metrics, TL_WORKER_LOOKUPS, 1);
    return true;
}

/* ---- the outcome of a command ---- */

static void answer_join(struct tl_hold *hold, const struct tl_pending_command *pending,
                        const struct tl_pending_result *result)
{
    struct tl_room *room = hold->room;
    struct tl_metrics *metrics = room->edge->metrics;
    struct tl_ticket ticket = tl_answer_ticket(room, pending->visitor, result->place);
    int64_t since_us = hold->since_us;
    struct tl_request *request = release(hold);
    if (result->end == TL_PENDING_APPLIED && result->outcome == TL_OUTCOME_SPENT) {
        tl_problem_answer(request, TL_PROBLEM_INVITE_SPENT, "%s", "");
    } else if (result->end == TL_PENDING_APPLIED) {
        tl_metrics_add(metrics, TL_WORKER_JOINS, 1);
        tl_metrics_observe(metrics, TL_WORKER_JOIN_TIME, tl_clock_us() - since_us);
        if (!tl_room_about_to_admit(room, ticket.place) ||
            !tl_push_wait_for_admission(room->push, request, &ticket, since_us / 1000))
            tl_answer_view(room, request, &ticket, true);
    } else if (result->end == TL_PENDING_LOST) {
        tl_answer_pending(room, request, pending->visitor, pending->lane);
    } else {
        tl_metrics_add(metrics, TL_WORKER_JOINS_REFUSED, 1);
        tl_problem_answer(request, TL_PROBLEM_STORE, "The store did not take the join; try again");
    }
}

static void answer_command(struct tl_hold *hold, const struct tl_pending_result *result)
{
    struct tl_room *room = hold->room;
    struct tl_ticket ticket = hold->ticket;
    struct tl_request *request = release(hold);
    if (result->end == TL_PENDING_REFUSED)
        tl_problem_answer(request, TL_PROBLEM_STORE,
                          "The store did not take the command; try again");
    else if (result->end == TL_PENDING_LOST)
        tl_problem_answer(
            request, TL_PROBLEM_UNKNOWN_OUTCOME,
            "The command was taken, but its outcome is not known; ask for the status");
    else if (result->outcome == TL_OUTCOME_WAITING)
        tl_problem_answer(request, TL_PROBLEM_NOT_ADMITTED, "This place is still waiting");
    else
        tl_answer_view(room, request, &ticket, false);
}

void tl_hold_settle(void *context, struct tl_pending_command *pending,
                    const struct tl_pending_result *result)
{
    struct tl_room *room = context;
    if (pending->kind == TL_COMMAND_RENEW && result->end != TL_PENDING_APPLIED)
        (void)tl_placemap_remove(room->claimed, pending->place,
                                 NULL); /* the next poll claims again */
    while (pending->waiters != NULL) {
        struct tl_hold *hold = pending->waiters;
        pending->waiters = hold->next_waiter;
        if (room->gone)
            tl_problem_answer(release(hold), TL_PROBLEM_NO_QUEUE, "The queue was deleted");
        else if (hold->kind == TL_HOLD_JOIN)
            answer_join(hold, pending, result);
        else
            answer_command(hold, result);
    }
}

/* ---- lookups ---- */

static void fail_lookup(struct tl_hold *hold)
{
    tl_problem_answer(release(hold), TL_PROBLEM_STORE,
                      "The store could not be asked about this place; try again");
}

void tl_hold_found(struct tl_edge *edge, uint64_t lookup, enum tl_lookup_found found,
                   enum tl_reason reason)
{
    struct tl_hold *hold = edge->lookups.first;
    while (hold != NULL && hold->lookup != lookup)
        hold = hold->next;
    if (hold == NULL)
        return; /* answered already: its time was over */
    struct tl_room *room = hold->room;
    struct tl_ticket ticket = hold->ticket;
    if (found == TL_LOOKUP_ALIVE) {
        hold->lagging = true;
    } else if (found == TL_LOOKUP_FAILED) {
        fail_lookup(hold);
    } else {
        tl_room_remember_end(room, ticket.place, found == TL_LOOKUP_ENDED ? reason : 0);
        tl_answer_view(room, release(hold), &ticket, false);
    }
}

static bool line_knows(const struct tl_hold *hold)
{
    bool known;
    (void)tl_room_look(hold->room, hold->ticket.place, &known);
    return known;
}

void tl_hold_drop_lookups(struct tl_edge *edge, const struct tl_room *room)
{
    struct tl_hold *next;
    for (struct tl_hold *hold = edge->lookups.first; hold != NULL; hold = next) {
        next = hold->next;
        if (room == NULL || hold->room == room)
            fail_lookup(hold);
    }
}

/* ---- time ---- */

static void time_out(struct tl_hold *hold)
{
    struct tl_room *room = hold->room;
    struct tl_metrics *metrics = room->edge->metrics;
    const struct tl_pending_command *pending = hold->pending;
    detach(hold);
    if (hold->kind == TL_HOLD_COMMAND) {
        tl_problem_answer(release(hold), TL_PROBLEM_UNKNOWN_OUTCOME,
                          "The command is under way; ask for the status to see its outcome");
    } else if (pending->sent) {
        tl_answer_pending(room, release(hold), pending->visitor, pending->lane);
    } else {
        tl_metrics_add(metrics, TL_WORKER_JOINS_REFUSED, 1);
        tl_problem_answer(release(hold), TL_PROBLEM_STORE,
                          "The store has not taken the join in time; try again");
    }
}

void tl_hold_tick(struct tl_edge *edge, int64_t now_ms)
{
    struct tl_hold *next;
    for (struct tl_hold *hold = edge->holds.first; hold != NULL && hold->deadline_ms <= now_ms;
         hold = next) {
        next = hold->next;
        time_out(hold);
    }
    for (struct tl_hold *hold = edge->lookups.first; hold != NULL; hold = next) {
        next = hold->next;
        if (hold->lagging && line_knows(hold)) {
            struct tl_room *room = hold->room;
            struct tl_ticket ticket = hold->ticket;
            tl_answer_view(room, release(hold), &ticket, false);
        } else if (hold->deadline_ms <= now_ms) {
            fail_lookup(hold);
        }
    }
}
