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
#include "worker/api/standing.h"
#include "worker/api/visitor.h"
#include "worker/http/renderer.h"
#include "worker/queue/tickets.h"
#include "worker/report/worker_metrics.h"

/* The join of a pending ticket was not repeated, or a join came so late that the place which its
 * visitor got meanwhile has ended: asks the store about that end. */
static void ask_for_end(struct tl_api *api, const struct tl_held *held,
                        const struct tl_pending_command *join)
{
    struct tl_held asks = *held;
    if (asks.ticket.issued == 0) {
        asks.ticket.issued = (uint32_t)(join->made_ms / 1000);
        memcpy(asks.ticket.visitor, join->visitor, sizeof(asks.ticket.visitor));
    }
    asks.otherwise = TL_REFUSAL_BAD_TICKET;
    asks.since_us = tl_clock_us();
    if (!tl_queue_env_store_up(api->env) || !tl_holds_lookup(api->holds, &asks))
        tl_answer_unknown(api, &asks);
}

/* Did the join find a place that was handed over to another device? Only that device's ticket, or a
 * trusted caller, gets it. */
static bool found_moved(const struct tl_api *api, const struct tl_held *held, tl_place place)
{
    return tl_queue_serial(held->queue, place) > held->ticket.serial &&
           !tl_visitor_trusted(api, held->request);
}

/* The form of a page whose visitor's place is over has the invite of the address, which may be the
 * one that opened that place. Where a newcomer needs none, it is left out of the address. */
static bool goes_without(const struct tl_held *held)
{
    return strcmp(tl_request_method(held->request), "POST") == 0 &&
           strncmp(tl_request_path(held->request), "/q/", 3) == 0 &&
           tl_request_query(held->request, "invite") != NULL &&
           held->queue->settings.join != TL_JOIN_INVITED;
}

static void answer_join(struct tl_api *api, const struct tl_held *held,
                        const struct tl_pending_command *pending,
                        const struct tl_pending_result *result)
{
    struct tl_metrics *metrics = api->env->metrics;
    bool applied = result != NULL && result->end == TL_PENDING_APPLIED;
    bool repeated = tl_place_seq(held->ticket.place) == 0 && held->ticket.issued != 0;
    if (applied && result->outcome == TL_OUTCOME_SPENT && (repeated || pending->invite == NULL)) {
        ask_for_end(api, held, pending);
    } else if (applied && result->outcome == TL_OUTCOME_SPENT && goes_without(held)) {
        tl_page_send_clean(api, held->request, held->queue->name);
    } else if (applied && result->outcome == TL_OUTCOME_SPENT) {
        struct tl_refusal refusal;
        tl_challenge_refuse_spent(api, held->queue, held->request, pending->invite, &refusal);
        tl_render_refusal(held->request, &refusal);
    } else if (applied && result->outcome == TL_OUTCOME_FULL) {
        struct tl_refusal refusal;
        tl_metrics_add(metrics, TL_WORKER_JOINS_REFUSED, 1);
        tl_standing_no_place(api, held->request, held->queue, &refusal);
        tl_render_refusal(held->request, &refusal);
    } else if (applied && found_moved(api, held, result->place)) {
        tl_render_refused(held->request, TL_REFUSAL_MOVED, "");
    } else if (applied) {
        int64_t now_us = tl_clock_us();
        const struct tl_ticket ticket =
            tl_answer_ticket(held->queue, api->env, pending->visitor, result->place, now_us / 1000);
        tl_metrics_add(metrics, TL_WORKER_JOINS, 1);
        tl_metrics_observe(metrics, TL_WORKER_JOIN_TIME, now_us - held->since_us);
        if (!tl_queue_about_to_admit(held->queue, ticket.place, now_us / 1000) ||
            !tl_subscribers_wait_for_admission(held->queue->subscribers, held->request, &ticket,
                                               held->since_us / 1000))
            tl_answer_view(api, held->queue, held->request, &ticket, true);
    } else if (result == NULL || result->end == TL_PENDING_LOST) {
        struct tl_ticket joined = {.place = tl_place_make(pending->lane, 0),
                                   .invite = held->ticket.invite,
                                   .issued = repeated ? held->ticket.issued : 0};
        memcpy(joined.visitor, pending->visitor, sizeof(joined.visitor));
        tl_answer_pending(api, held->queue, held->request, &joined);
    } else {
        tl_metrics_add(metrics, TL_WORKER_JOINS_REFUSED, 1);
        tl_render_refused(held->request, TL_REFUSAL_STORE,
                          "The store did not take the join; try again");
    }
}

/* A visitor gives up a place whose number was not known: the LEAVE follows the join. Not numbered
 * in time: the join remembers to leave (tl_join_then_leave). */
static void answer_leaving(struct tl_api *api, const struct tl_held *held,
                           const struct tl_pending_command *pending,
                           const struct tl_pending_result *result)
{
    struct tl_held leaves = *held;
    if (result == NULL || result->end != TL_PENDING_APPLIED || !tl_join_gave_place(result)) {
        answer_join(api, held, pending, result);
        return;
    }
    if (tl_queue_serial(held->queue, result->place) > 0) { /* a pending ticket has none */
        tl_render_refused(held->request, TL_REFUSAL_MOVED, "");
        return;
    }
    leaves.since_us = tl_clock_us();
    leaves.ticket = tl_answer_ticket(held->queue, api->env, pending->visitor, result->place,
                                     leaves.since_us / 1000);
    if (api->leaving == NULL || !tl_holds_command(api->holds, &leaves, api->leaving))
        tl_render_refused(held->request, TL_REFUSAL_BUSY,
                          "There is no memory for this command; try again");
}

/* The place has ended, and a new one needs an invite or a solution. */
static void refuse_new_place(struct tl_api *api, const struct tl_held *held)
{
    struct tl_puzzle_solved unused;
    struct tl_refusal refusal;
    if (held->queue->settings.join == TL_JOIN_INVITED)
        tl_refuse(&refusal, TL_REFUSAL_BY_INVITATION, "%s", "");
    else if (tl_challenge_passed(api, held->queue, held->request, &(struct tl_proof){0}, &unused,
                                 &refusal))
        tl_refuse(&refusal, TL_REFUSAL_UNKNOWN_OUTCOME, "%s",
                  "The queue's settings changed; try again");
    tl_render_refusal(held->request, &refusal);
}

/* Joining again: by JOIN, or by CLAIM where an invite is needed for a new place. Without an outcome
 * the visitor gets what is known here. The store may have lost the place while the command was on
 * its way: then that comes back first, whatever the command found. */
static void answer_again(struct tl_api *api, const struct tl_held *held,
                         const struct tl_pending_command *pending,
                         const struct tl_pending_result *result)
{
    struct tl_ticket ticket = held->ticket;
    bool joins = pending->kind == TL_COMMAND_JOIN;
    bool applied = result != NULL && result->end == TL_PENDING_APPLIED;
    bool lost = tl_queue_outdated(held->queue, &ticket);
    bool gone = lost || (applied && result->outcome == TL_OUTCOME_GONE);
    bool adopted = tl_queue_adopt(held->queue, &ticket);
    if (tl_queue_may_return(held->queue, &ticket) || (gone && adopted && !(joins && applied)))
        tl_router_handle(tl_routes, api, held->request);
    else if (joins && (applied || lost))
        answer_join(api, held, pending, result);
    else if (gone)
        refuse_new_place(api, held);
    else
        tl_answer_view(api, held->queue, held->request, &held->ticket, true);
}

/* The store lost its data while the command was on its way. If the place comes back, the request is
 * handled again, with the ticket that it brought. */
static void answer_lost_command(struct tl_api *api, const struct tl_held *held)
{
    struct tl_ticket ticket = held->ticket;
    if (tl_queue_adopt(held->queue, &ticket) || tl_queue_may_return(held->queue, &ticket))
        tl_router_handle(tl_routes, api, held->request);
    else
        tl_render_refused(held->request, TL_REFUSAL_OLD_GENERATION, "");
}

/* The answer to an EXTEND must not claim the session: it carries the ticket, like that to a join.
 */
static void answer_command(struct tl_api *api, const struct tl_held *held,
                           const struct tl_pending_command *pending,
                           const struct tl_pending_result *result)
{
    if (tl_queue_outdated(held->queue, &held->ticket))
        answer_lost_command(api, held);
    else if (result == NULL)
        tl_render_refused(held->request, TL_REFUSAL_UNKNOWN_OUTCOME,
                          "The command is in progress; ask for the status to see its outcome");
    else if (result->end == TL_PENDING_REFUSED)
        tl_render_refused(held->request, TL_REFUSAL_STORE,
                          "The store did not take the command; try again");
    else if (result->end == TL_PENDING_LOST)
        tl_render_refused(
            held->request, TL_REFUSAL_UNKNOWN_OUTCOME,
            "The command was taken, but its outcome is not known; ask for the status");
    else if (result->outcome == TL_OUTCOME_WAITING)
        tl_render_refused(held->request, TL_REFUSAL_NOT_ADMITTED, "This place is still waiting");
    else
        tl_answer_view(api, held->queue, held->request, &held->ticket,
                       pending->kind == TL_COMMAND_EXTEND);
}

/* The request is handled again: its ticket is of the present generation now, or is refused. */
static void answer_restore(struct tl_api *api, const struct tl_held *held,
                           const struct tl_pending_result *result)
{
    if (result == NULL || result->end != TL_PENDING_APPLIED)
        tl_render_refused(held->request, TL_REFUSAL_STORE,
                          "Your place is being restored; try again");
    else
        tl_router_handle(tl_routes, api, held->request);
}

void tl_outcome_settled(void *context, const struct tl_held *held,
                        const struct tl_pending_command *pending,
                        const struct tl_pending_result *result)
{
    if (result != NULL && held->queue->deleted)
        tl_render_refused(held->request, TL_REFUSAL_NO_QUEUE, "The queue was deleted");
    else if (held->gate)
        tl_check_claimed(context, held, result);
    else if (held->again)
        answer_again(context, held, pending, result);
    else if (pending->kind == TL_COMMAND_JOIN && held->leaves)
        answer_leaving(context, held, pending, result);
    else if (pending->kind == TL_COMMAND_JOIN)
        answer_join(context, held, pending, result);
    else if (pending->kind == TL_COMMAND_RESTORE)
        answer_restore(context, held, result);
    else if (pending->kind == TL_COMMAND_HAND_OVER)
        tl_handover_settled(context, held, result);
    else
        answer_command(context, held, pending, result);
}

/* What the store says of a pending ticket, whose place may have ended. */
static void answer_pending_ticket(struct tl_api *api, const struct tl_held *held, bool known)
{
    static const char *const details[TL_REFUSAL_COUNT] = {
        [TL_REFUSAL_BAD_TICKET] = "Its invite was spent before, or its place ended long ago",
        [TL_REFUSAL_NOT_NUMBERED] = "Ask for the status first"};
    struct tl_subscribers *subscribers = held->queue->subscribers;
    if (held->request == NULL) { /* asked for an event stream, which asks again if need be */
        if (known && subscribers != NULL)
            tl_subscribers_over(subscribers, &held->ticket, held->ended, tl_clock_ms());
    } else if (!known) {
        tl_answer_unknown(api, held);
    } else if (held->ended == 0) {
        tl_render_refused(held->request, held->otherwise, details[held->otherwise]);
    } else if (held->joins && held->ended == TL_REASON_REMOVED) {
        tl_render_refused(held->request, TL_REFUSAL_REMOVED, "");
    } else if (held->joins) {
        tl_join_past_end(api, held->queue, held->request, &held->ticket);
    } else {
        tl_answer_ended(api, held->queue, held->request, &held->ticket,
                        (enum tl_reason)held->ended);
    }
}

void tl_outcome_looked_up(void *context, const struct tl_held *held, bool known)
{
    struct tl_subscribers *subscribers = held->queue->subscribers;
    if (tl_place_seq(held->ticket.place) == 0)
        answer_pending_ticket(context, held, known);
    else if (held->request == NULL && subscribers != NULL) /* asked for an event stream */
        tl_subscribers_look(subscribers, held->ticket.place, tl_clock_ms());
    else if (held->request != NULL && (known || tl_queue_outdated(held->queue, &held->ticket)))
        tl_answer_view(context, held->queue, held->request, &held->ticket, held->give_ticket);
    else if (held->request != NULL)
        tl_answer_unknown(context, held);
}

/* The place of a request that waited for a change is lost. Is that a join, which gets a place anew?
 * Not if the request brought a ticket with which the place comes back, or asks about one. */
static bool joins_anew(const struct tl_api *api, const struct tl_queue *queue,
                       const struct tl_request *request, bool returns)
{
    struct tl_ticket brought;
    bool numbered =
        tl_visitor_ticket(api, request, queue->name, &brought) && tl_place_seq(brought.place) != 0;
    return !numbered || (!returns && strcmp(tl_request_method(request), "POST") == 0);
}

void tl_outcome_changed(void *context, struct tl_queue *queue, struct tl_request *request,
                        const struct tl_ticket *ticket, bool give_ticket)
{
    const struct tl_api *api = context;
    struct tl_ticket fresh = *ticket;
    bool returns = tl_queue_may_return(queue, ticket);
    bool lost = returns || tl_queue_outdated(queue, ticket);
    if (give_ticket && lost && joins_anew(api, queue, request, returns)) {
        fresh.invite = TL_TICKET_TRUSTED;
        tl_answer_pending(context, queue, request, &fresh);
        return;
    }
    fresh.issued = (uint32_t)(tl_queue_env_store_ms(api->env, tl_clock_ms()) / 1000);
    tl_answer_view(context, queue, request, &fresh, give_ticket);
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
