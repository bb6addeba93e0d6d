/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/api/status.h"
#include "common/base/clock.h"
#include "common/base/units.h"
#include "worker/api/answer.h"
#include "worker/api/block.h"
#include "worker/api/cookie.h"
#include "worker/api/join.h"
#include "worker/api/visitor.h"
#include "worker/queue/tickets.h"
#include "worker/report/worker_metrics.h"

enum {
    WAIT_MAX_MS = 55000, /* proxies commonly give up after a minute */
    TICKET_AGE_S = 60,   /* a visitor who waits gets a new ticket for an older one: it tells the
                            front of the line as it is now */
};

/* How long `?wait=20s` asks to wait for a change; 0 without it. */
static bool wanted_wait(const struct tl_request *request, int64_t *wait_ms,
                        struct tl_refusal *refusal)
{
    const char *text = tl_request_query(request, "wait");
    *wait_ms = 0;
    if (text == NULL || (tl_duration_parse(text, wait_ms, NULL) && *wait_ms <= WAIT_MAX_MS))
        return true;
    return tl_refuse(refusal, TL_REFUSAL_BAD_QUERY, "wait: a duration from 0s to %ds",
                     WAIT_MAX_MS / 1000);
}

bool tl_handle_status(void *context, struct tl_request *request, const char *name,
                      struct tl_refusal *refusal)
{
    struct tl_api *api = context;
    struct tl_ticket ticket;
    int64_t wait_ms;
    bool known;
    if (!tl_block_passes(api, request, name, refusal))
        return false;
    struct tl_queue *queue = tl_visitor_of(api, request, name, &ticket, refusal);
    if (queue == NULL)
        return false;
    tl_metrics_add(api->env->metrics, TL_WORKER_STATUS, 1);
    if (tl_place_seq(ticket.place) == 0) /* joining again returns the place of the first join */
        return tl_join_by_ticket(api, queue, request, &ticket, refusal);
    if (!wanted_wait(request, &wait_ms, refusal))
        return false;
    if (tl_queue_moved(queue, &ticket)) {
        tl_answer_view(api, queue, request, &ticket, false);
        return true;
    }
    enum tl_line_status status = tl_queue_look(queue, ticket.place, &known).status;
    bool may_change = status == TL_LINE_WAITING || status == TL_LINE_ACTIVE;
    int64_t now_ms = tl_clock_ms();
    bool renewed =
        status == TL_LINE_WAITING && !ticket.outdated &&
        tl_ticket_age_s(&ticket, tl_queue_env_store_ms(api->env, now_ms) / 1000) >= TICKET_AGE_S;
    if (renewed)
        ticket = tl_answer_ticket(queue, api->env, ticket.visitor, ticket.place, now_ms);
    /* A cookie is replaced at once: after the wait there may be one of another place. */
    bool replaces =
        ticket.outdated && tl_visitor_bearer(request) == NULL && tl_cookie_sent(request, name);
    struct tl_address address;
    const struct tl_address *client;
    if (wait_ms == 0 || replaces || api->env->draining || !may_change ||
        !tl_visitor_may_stay(api, request, &address, &client) ||
        !tl_subscribers_wait(queue->subscribers, request, &ticket, client, now_ms,
                             now_ms + wait_ms))
        tl_answer_view(api, queue, request, &ticket, renewed);
    return true;
}

/* A place without a number cannot be completed or renewed; but if it has ended already, the answer
 * says so. */
static bool refuse_pending(const struct tl_api *api, struct tl_queue *queue,
                           struct tl_request *request, const struct tl_ticket *ticket,
                           struct tl_refusal *refusal)
{
    const struct tl_held held = {.queue = queue,
                                 .request = request,
                                 .ticket = *ticket,
                                 .otherwise = TL_REFUSAL_NOT_NUMBERED,
                                 .since_us = tl_clock_us()};
    return (tl_queue_env_store_up(api->env) && tl_holds_lookup(api->holds, &held)) ||
           tl_refuse(refusal, TL_REFUSAL_NOT_NUMBERED, "Ask for the status first");
}

static bool command(struct tl_api *api, struct tl_request *request, const char *name,
                    enum tl_command_kind kind, struct tl_refusal *refusal)
{
    struct tl_ticket ticket;
    bool known;
    struct tl_queue *queue = tl_visitor_of(api, request, name, &ticket, refusal);
    if (queue == NULL)
        return false;
    if (tl_place_seq(ticket.place) == 0 && kind == TL_COMMAND_LEAVE)
        return tl_join_then_leave(api, queue, request, &ticket, refusal);
    if (tl_place_seq(ticket.place) == 0)
        return refuse_pending(api, queue, request, &ticket, refusal);
    if (tl_queue_moved(queue, &ticket))
        return tl_refuse(refusal, TL_REFUSAL_MOVED, "%s", "");
    if (tl_queue_look(queue, ticket.place, &known).status == TL_LINE_ENDED) {
        tl_answer_view(api, queue, request, &ticket, false); /* already done, or never possible */
        return true;
    }
    bool repeats = kind == TL_COMMAND_RENEW || kind == TL_COMMAND_EXTEND;
    if (repeats && !tl_visitor_may_repeat(api, queue, &ticket)) {
        tl_answer_view(api, queue, request, &ticket, kind == TL_COMMAND_EXTEND);
        return true;
    }
    if (!tl_visitor_may_send(api, refusal))
        return false;
    struct tl_pending_command *pending =
        tl_outbox_command(queue->outbox, kind, ticket.visitor, ticket.place);
    if (pending != NULL && tl_holds_command(api->holds,
                                            &(struct tl_held){.queue = queue,
                                                              .request = request,
                                                              .ticket = ticket,
                                                              .since_us = tl_clock_us()},
                                            pending))
        return true;
    return tl_refuse(refusal, TL_REFUSAL_BUSY, "There is no memory for this command; try again");
}

bool tl_handle_leave(void *context, struct tl_request *request, const char *queue,
                     struct tl_refusal *refusal)
{
    return command(context, request, queue, TL_COMMAND_LEAVE, refusal);
}

bool tl_handle_complete(void *context, struct tl_request *request, const char *queue,
                        struct tl_refusal *refusal)
{
    return command(context, request, queue, TL_COMMAND_COMPLETE, refusal);
}

bool tl_handle_renew(void *context, struct tl_request *request, const char *queue,
                     struct tl_refusal *refusal)
{
    return command(context, request, queue, TL_COMMAND_RENEW, refusal);
}

bool tl_handle_extend(void *context, struct tl_request *request, const char *queue,
                      struct tl_refusal *refusal)
{
    return command(context, request, queue, TL_COMMAND_EXTEND, refusal);
}
