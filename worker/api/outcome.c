/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "common/base/clock.h"
#include "worker/api/answer.h"
#include "worker/api/challenge.h"
#include "worker/api/check.h"
#include "worker/api/handover.h"
#include "worker/api/join.h"
#include "worker/api/outcome.h"
#include "worker/api/page_renderer.h"
#include "worker/api/routes.h"
#include "worker/http/renderer.h"
#include "worker/report/worker_metrics.h"

/* What a visit waited for. result NULL: it has no outcome in time. */
struct outcome {
    const struct tl_held *held;
    const struct tl_pending_command *pending;
    const struct tl_pending_result *result;
    bool applied;
};

/* The join of a pending ticket was not repeated, or a join came so late that the place which its
 * visitor got meanwhile has ended: asks the store about that end. */
static void ask_for_end(struct tl_visit *visit, const struct outcome *outcome)
{
    const struct tl_pending_command *join = outcome->pending;
    struct tl_ticket *ticket = &visit->ticket;
    if (ticket->issued == 0) {
        ticket->issued = (uint32_t)(join->made_ms / 1000);
        memcpy(ticket->visitor, join->visitor, sizeof(ticket->visitor));
    }
    struct tl_held asks = *outcome->held;
    asks.ticket = *ticket;
    asks.otherwise = TL_REFUSAL_BAD_TICKET;
    asks.since_us = tl_clock_us();
    if (!tl_queue_env_store_up(visit->api->env) || !tl_holds_lookup(visit->api->holds, &asks))
        tl_answer_unknown(visit, asks.give_ticket);
}

/* Did the join find a place that was handed over to another device? Only that device's ticket, or a
 * trusted caller, gets it. */
static bool found_moved(const struct tl_visit *visit, tl_place place)
{
    return tl_queue_serial(visit->queue, place) > visit->ticket.serial &&
           !tl_visitor_trusted(visit->api, visit->request);
}

/* The form of a page whose visitor's place is over has the invite of the address, which may be the
 * one that opened that place. Where a newcomer needs none, it is left out of the address. */
static bool goes_without(const struct tl_visit *visit)
{
    return strcmp(tl_request_method(visit->request), "POST") == 0 &&
           strncmp(tl_request_path(visit->request), "/q/", 3) == 0 &&
           tl_request_query(visit->request, "invite") != NULL &&
           visit->queue->settings.join != TL_JOIN_INVITED;
}

/* The visitor has this place. */
static void answer_place(struct tl_visit *visit, const struct outcome *outcome)
{
    struct tl_metrics *metrics = visit->api->env->metrics;
    const struct tl_held *held = outcome->held;
    int64_t now_us = tl_clock_us();
    visit->ticket = tl_answer_ticket(visit->queue, outcome->pending->visitor,
                                     outcome->result->place, now_us / 1000);
    tl_metrics_add(metrics, TL_WORKER_JOINS, 1);
    tl_metrics_observe(metrics, TL_WORKER_JOIN_TIME, now_us - held->since_us);
    if (!tl_queue_about_to_admit(visit->queue, visit->ticket.place, now_us / 1000) ||
        !tl_subscribers_wait_for_admission(visit->queue->subscribers, visit->request,
                                           &visit->ticket, held->since_us / 1000))
        tl_answer_anew(visit, true);
}

/* The place has no number yet: with a pending ticket of the join. */
static void answer_unnumbered(struct tl_visit *visit, const struct tl_pending_command *join,
                              bool repeated)
{
    struct tl_ticket joined = {.place = tl_place_make(join->lane, 0),
                               .invite = visit->ticket.invite,
                               .issued = repeated ? visit->ticket.issued : 0};
    memcpy(joined.visitor, join->visitor, sizeof(joined.visitor));
    visit->ticket = joined;
    tl_answer_pending(visit);
}

static void answer_join(struct tl_visit *visit, const struct outcome *outcome)
{
    const struct tl_pending_command *join = outcome->pending;
    const struct tl_pending_result *result = outcome->result;
    struct tl_metrics *metrics = visit->api->env->metrics;
    bool applied = outcome->applied;
    bool spent = applied && result->outcome == TL_OUTCOME_SPENT;
    bool repeated = tl_place_seq(visit->ticket.place) == 0 && visit->ticket.issued != 0;
    if (spent && (repeated || join->invite == NULL)) {
        ask_for_end(visit, outcome);
    } else if (spent && goes_without(visit)) {
        tl_page_send_clean(visit->api, visit->request, visit->name);
    } else if (spent) {
        (void)tl_challenge_refuse_spent(visit, join->invite);
        tl_render_refusal(visit->request, &visit->refusal);
    } else if (applied && result->outcome == TL_OUTCOME_FULL) {
        tl_metrics_add(metrics, TL_WORKER_JOINS_REFUSED, 1);
        (void)tl_join_no_place(visit);
        tl_render_refusal(visit->request, &visit->refusal);
    } else if (applied && found_moved(visit, result->place)) {
        tl_render_refused(visit->request, TL_REFUSAL_MOVED, "");
    } else if (applied) {
        answer_place(visit, outcome);
    } else if (result == NULL || result->end == TL_PENDING_LOST) {
        answer_unnumbered(visit, join, repeated);
    } else {
        tl_metrics_add(metrics, TL_WORKER_JOINS_REFUSED, 1);
        tl_render_refused(visit->request, TL_REFUSAL_STORE,
                          "The store did not take the join; try again");
    }
}

/* A visitor gives up a place whose number was not known: the LEAVE follows the join. Not numbered
 * in time: the join remembers to leave (tl_join_then_leave). */
static void answer_leaving(struct tl_visit *visit, const struct outcome *outcome)
{
    const struct tl_pending_result *result = outcome->result;
    if (!outcome->applied || !tl_join_gave_place(result)) {
        answer_join(visit, outcome);
        return;
    }
    if (tl_queue_serial(visit->queue, result->place) > 0) { /* a pending ticket has none */
        tl_render_refused(visit->request, TL_REFUSAL_MOVED, "");
        return;
    }
    struct tl_held leaves = *outcome->held;
    leaves.since_us = tl_clock_us();
    leaves.ticket = tl_answer_ticket(visit->queue, outcome->pending->visitor, result->place,
                                     leaves.since_us / 1000);
    if (!tl_visit_hold(visit, &leaves, visit->api->leaving))
        tl_render_refusal(visit->request, &visit->refusal);
}

/* The place has ended, and a new one needs an invite or a solution. */
static void refuse_new_place(struct tl_visit *visit)
{
    struct tl_puzzle_solved unused;
    if (visit->queue->settings.join == TL_JOIN_INVITED)
        tl_refuse(&visit->refusal, TL_REFUSAL_BY_INVITATION, "%s", "");
    else if (tl_challenge_passed(visit, &(struct tl_proof){0}, &unused))
        tl_refuse(&visit->refusal, TL_REFUSAL_UNKNOWN_OUTCOME, "%s",
                  "The queue's settings changed; try again");
    tl_render_refusal(visit->request, &visit->refusal);
}

/* Joining again: by JOIN, or by CLAIM where an invite is needed for a new place. Without an outcome
 * the visitor gets what is known here. The store may have lost the place while the command was on
 * its way: then that comes back first, whatever the command found. */
static void answer_again(struct tl_visit *visit, const struct outcome *outcome)
{
    bool joins = outcome->pending->kind == TL_COMMAND_JOIN;
    bool lost = tl_queue_outdated(visit->queue, &visit->ticket);
    bool gone = lost || (outcome->applied && outcome->result->outcome == TL_OUTCOME_GONE);
    bool adopted = tl_queue_adopt(visit->queue, &visit->ticket);
    if (tl_queue_may_return(visit->queue, &visit->ticket) ||
        (gone && adopted && !(joins && outcome->applied)))
        tl_routes_handle(visit->api, visit->request);
    else if (joins && (outcome->applied || lost))
        answer_join(visit, outcome);
    else if (gone)
        refuse_new_place(visit);
    else
        tl_answer_anew(visit, true);
}

/* The store lost its data while the command was on its way. If the place comes back, the request is
 * handled again, with the ticket that it brought. */
static void answer_lost_command(struct tl_visit *visit)
{
    if (tl_queue_adopt(visit->queue, &visit->ticket) ||
        tl_queue_may_return(visit->queue, &visit->ticket))
        tl_routes_handle(visit->api, visit->request);
    else
        tl_render_refused(visit->request, TL_REFUSAL_OLD_GENERATION, "");
}

/* The answer to an EXTEND must not claim the session: it carries the ticket, like that to a join.
 */
static void answer_command(struct tl_visit *visit, const struct outcome *outcome)
{
    const struct tl_pending_result *result = outcome->result;
    if (tl_queue_outdated(visit->queue, &visit->ticket))
        answer_lost_command(visit);
    else if (result == NULL)
        tl_render_refused(visit->request, TL_REFUSAL_UNKNOWN_OUTCOME,
                          "The command is in progress; ask for the status to see its outcome");
    else if (result->end == TL_PENDING_REFUSED)
        tl_render_refused(visit->request, TL_REFUSAL_STORE,
                          "The store did not take the command; try again");
    else if (result->end == TL_PENDING_LOST)
        tl_render_refused(
            visit->request, TL_REFUSAL_UNKNOWN_OUTCOME,
            "The command was taken, but its outcome is not known; ask for the status");
    else if (result->outcome == TL_OUTCOME_WAITING)
        tl_render_refused(visit->request, TL_REFUSAL_NOT_ADMITTED, "This place is still waiting");
    else
        tl_answer_anew(visit, outcome->pending->kind == TL_COMMAND_EXTEND);
}

/* The request is handled again: its ticket is of the present generation now, or is refused. */
static void answer_restore(struct tl_visit *visit, const struct outcome *outcome)
{
    if (outcome->applied)
        tl_routes_handle(visit->api, visit->request);
    else
        tl_render_refused(visit->request, TL_REFUSAL_STORE,
                          "Your place is being restored; try again");
}

void tl_outcome_settled(void *context, const struct tl_held *held,
                        const struct tl_pending_command *pending,
                        const struct tl_pending_result *result)
{
    struct tl_visit visit = tl_visit_of(context, held->queue, held->request, &held->ticket);
    const struct outcome outcome = {.held = held,
                                    .pending = pending,
                                    .result = result,
                                    .applied = result != NULL && result->end == TL_PENDING_APPLIED};
    if (result != NULL && held->queue->deleted)
        tl_render_refused(held->request, TL_REFUSAL_NO_QUEUE, "The queue was deleted");
    else if (held->gate)
        tl_check_claimed(&visit, result);
    else if (held->again)
        answer_again(&visit, &outcome);
    else if (pending->kind == TL_COMMAND_JOIN && held->leaves)
        answer_leaving(&visit, &outcome);
    else if (pending->kind == TL_COMMAND_JOIN)
        answer_join(&visit, &outcome);
    else if (pending->kind == TL_COMMAND_RESTORE)
        answer_restore(&visit, &outcome);
    else if (pending->kind == TL_COMMAND_HAND_OVER)
        tl_handover_settled(&visit, result);
    else
        answer_command(&visit, &outcome);
}

/* What the store says of a pending ticket, whose place may have ended. */
static void answer_pending_ticket(struct tl_visit *visit, const struct tl_held *held, bool known)
{
    static const char *const details[TL_REFUSAL_COUNT] = {
        [TL_REFUSAL_BAD_TICKET] = "Its invite was spent before, or its place ended long ago",
        [TL_REFUSAL_NOT_NUMBERED] = "Ask for the status first"};
    struct tl_subscribers *subscribers = visit->queue->subscribers;
    if (visit->request == NULL) { /* asked for an event stream, which asks again if need be */
        if (known && subscribers != NULL)
            tl_subscribers_over(subscribers, &visit->ticket, held->ended, tl_clock_ms());
    } else if (!known) {
        tl_answer_unknown(visit, held->give_ticket);
    } else if (held->ended == 0) {
        tl_render_refused(visit->request, held->otherwise, details[held->otherwise]);
    } else if (held->joins && held->ended == TL_REASON_REMOVED) {
        tl_render_refused(visit->request, TL_REFUSAL_REMOVED, "");
    } else if (held->joins) {
        if (!tl_join_past_end(visit))
            tl_render_refusal(visit->request, &visit->refusal);
    } else {
        tl_answer_ended(visit, (enum tl_reason)held->ended);
    }
}

void tl_outcome_looked_up(void *context, const struct tl_held *held, bool known)
{
    struct tl_visit visit = tl_visit_of(context, held->queue, held->request, &held->ticket);
    struct tl_subscribers *subscribers = held->queue->subscribers;
    if (tl_place_seq(held->ticket.place) == 0)
        answer_pending_ticket(&visit, held, known);
    else if (held->request == NULL && subscribers != NULL) /* asked for an event stream */
        tl_subscribers_look(subscribers, held->ticket.place, tl_clock_ms());
    else if (held->request != NULL && (known || tl_queue_outdated(held->queue, &held->ticket)))
        tl_answer_anew(&visit, held->give_ticket);
    else if (held->request != NULL)
        tl_answer_unknown(&visit, held->give_ticket);
}

/* The place of a request that waited for a change is lost. Is that a join, which gets a place anew?
 * Not if the request brought a ticket with which the place comes back, or asks about one. */
static bool joins_anew(const struct tl_visit *visit, bool returns)
{
    struct tl_ticket brought;
    bool numbered = tl_visitor_ticket(visit->api, visit->request, visit->name, &brought) &&
                    tl_place_seq(brought.place) != 0;
    return !numbered || (!returns && strcmp(tl_request_method(visit->request), "POST") == 0);
}

void tl_outcome_changed(void *context, struct tl_queue *queue, struct tl_request *request,
                        const struct tl_ticket *ticket, bool give_ticket)
{
    struct tl_visit visit = tl_visit_of(context, queue, request, ticket);
    bool returns = tl_queue_may_return(queue, ticket);
    bool lost = returns || tl_queue_outdated(queue, ticket);
    if (give_ticket && lost && joins_anew(&visit, returns)) {
        visit.ticket.invite = TL_TICKET_TRUSTED;
        tl_answer_pending(&visit);
        return;
    }
    visit.ticket.issued = (uint32_t)(tl_queue_env_store_ms(visit.api->env, tl_clock_ms()) / 1000);
    tl_answer_anew(&visit, give_ticket);
}

void tl_outcome_refused(void *context, struct tl_queue *queue, struct tl_request *request,
                        bool blocked)
{
    const struct tl_api *api = context;
    if (blocked)
        tl_metrics_add(api->env->metrics, TL_WORKER_BLOCKED, 1);
    tl_render_refused(request,
                      blocked          ? TL_REFUSAL_BLOCKED
                      : queue->deleted ? TL_REFUSAL_NO_QUEUE
                                       : TL_REFUSAL_STOPPING,
                      "");
}
