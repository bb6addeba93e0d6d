/* SPDX-License-Identifier: Apache-2.0 */
/* What visitors do with the place they have: ask for it, follow it, use it, give it up. */
#include <string.h>

#include "common/base/units.h"
#include "worker/api/handlers.h"
#include "worker/http/sse.h"
#include "worker/report/worker_metrics.h"
#include "worker/visit/answer.h"
#include "worker/visit/browser.h"
#include "worker/visit/subscribers.h"
#include "worker/visit/view.h"

enum {
    WAIT_MAX_MS = 55000, /* proxies commonly give up after a minute */
    TICKET_AGE_S = 60,   /* a visitor who waits gets a new ticket for an older one: it tells the
                            front of the line as it is now */
    RETRY_MIN_MS = 2000,
    RETRY_SPREAD_MS = 3000,
    SHORT_MAX = TL_VIEW_MAX + 128
};

/* ---- status ---- */

/* How long `?wait=20s` asks to wait for a change; 0 without it. */
static bool wanted_wait(struct tl_visit *visit, int64_t *wait_ms)
{
    const char *text = tl_request_query(visit->request, "wait");
    *wait_ms = 0;
    if (text == NULL || (tl_duration_parse(text, wait_ms, NULL) && *wait_ms <= WAIT_MAX_MS))
        return true;
    return tl_refuse(&visit->refusal, TL_REFUSAL_BAD_QUERY, "wait: a duration from 0s to %ds",
                     WAIT_MAX_MS / 1000);
}

/* Waits for a change of the place, if the request may. */
static bool waits(struct tl_visit *visit, int64_t wait_ms)
{
    /* A cookie is replaced at once: after the wait there may be one of another place. */
    bool replaces =
        visit->ticket.outdated && tl_visit_bearer(visit) == NULL && tl_cookie_sent(visit);
    return wait_ms > 0 && !replaces && !visit->worker->env->draining &&
           (visit->worth == TL_WORTH_WAITS || visit->worth == TL_WORTH_ACTIVE) &&
           tl_visit_may_stay(visit) && tl_subscribers_wait(visit, visit->now_ms + wait_ms, false);
}

static bool status(struct tl_visit *visit)
{
    struct tl_ticket *ticket = &visit->ticket;
    int64_t wait_ms;
    tl_metrics_add(visit->worker->env->metrics, TL_WORKER_STATUS, 1);
    if (visit->worth == TL_WORTH_PENDING) /* joining again returns the place of the first join */
        return tl_join_by_ticket(visit);
    if (!wanted_wait(visit, &wait_ms))
        return false;
    int64_t now_ms = visit->now_ms;
    const bool renewed = visit->worth == TL_WORTH_WAITS && !ticket->outdated &&
                         tl_ticket_age_s(ticket, tl_queue_env_store_ms(visit->worker->env, now_ms) /
                                                     1000) >= TICKET_AGE_S;
    if (renewed)
        *ticket = tl_answer_ticket(visit->queue, ticket->visitor, ticket->place, now_ms);
    if (waits(visit, wait_ms))
        return true;
    visit->gives_ticket = renewed;
    return tl_answer_view(visit);
}

bool tl_handle_status(struct tl_visit *visit)
{
    return tl_visit_passes_blocks(visit) &&
           (tl_visit_ticket(visit, status) || tl_archived_place(visit));
}

/* ---- events ---- */

/*
 * A browser's EventSource gives up for good on any answer that is not text/event-stream. So every
 * valid ticket gets one, at once: also while its place has no number yet, or is not known here (the
 * subscribers ask for it), and when no stream can be kept: then a short one, which tells the place
 * and asks to come back.
 */

/* A stream that ends at once. If its line is not loaded, the place is not told. */
static void answer_short(struct tl_visit *visit)
{
    char text[SHORT_MAX];
    char view[TL_VIEW_MAX];
    int64_t now_ms = visit->now_ms;
    const struct tl_ticket *ticket = &visit->ticket;
    const struct tl_line_view *state = &visit->state;
    size_t length = tl_sse_retry(text, sizeof(text), RETRY_MIN_MS, RETRY_SPREAD_MS);
    if (visit->queue != NULL && visit->worth == TL_WORTH_MOVED) {
        length += tl_sse_event(text + length, sizeof(text) - length, "moved", "{}", 2);
    } else if (visit->queue != NULL && visit->worth != TL_WORTH_PENDING &&
               visit->worth != TL_WORTH_ASK_STORE) {
        tl_queue_touch(visit->queue, ticket->visitor, ticket->place, state, now_ms);
        visit->gives_ticket = ticket->outdated;
        size_t n = tl_answer_write_view(visit, tl_language_of(visit)->code, view);
        length += tl_sse_event(text + length, sizeof(text) - length,
                               tl_view_event_name(ticket->place, state->status), view, n);
    }
    struct tl_answer answer = {
        .status = 200, .type = "text/event-stream", .body = text, .length = length};
    tl_answer_header(&answer, "Connection", "close");
    tl_answer_header(&answer, "X-Accel-Buffering", "no");
    tl_answer_header(&answer, "X-Content-Type-Options", "nosniff");
    /* The client wanted a stream. A worker that drains sends everyone to another one, which is no
     * failure. */
    if (strcmp(tl_request_method(visit->request), "GET") == 0 && !visit->worker->env->draining)
        tl_metrics_add(visit->worker->env->metrics, TL_WORKER_STREAMS_FAILED, 1);
    tl_request_answer(visit->request, &answer);
}

static bool stream(struct tl_visit *visit)
{
    if (strcmp(tl_request_method(visit->request), "GET") != 0 || visit->worker->env->draining ||
        !tl_visit_may_stay(visit) || !tl_subscribers_stream(visit, tl_language_of(visit)->code))
        answer_short(visit);
    return true;
}

bool tl_handle_events(struct tl_visit *visit)
{
    if (!tl_visit_passes_blocks(visit))
        return false;
    if (tl_visit_ticket(visit, stream))
        return true;
    const enum tl_refusal_kind kind = visit->refusal.kind;
    if ((kind != TL_REFUSAL_LOADING && kind != TL_REFUSAL_STOPPING) ||
        !tl_visit_brought(visit, &visit->ticket))
        return false;
    visit->queue = NULL; /* nothing is told of it now */
    answer_short(visit);
    return true;
}

/* ---- commands ---- */

/* A place without a number cannot be completed or renewed; but if it has ended already, the answer
 * says so. */
static bool refuse_pending(struct tl_visit *visit)
{
    if (visit->wait.ended != 0)
        return tl_answer_ended(visit, (enum tl_reason)visit->wait.ended);
    return tl_refuse(&visit->refusal, TL_REFUSAL_NOT_NUMBERED, "Ask for the status first");
}

/* The store has said whether it has ended. */
static bool pending_asked(struct tl_visit *visit)
{
    return visit->wait.known ? refuse_pending(visit) : tl_answer_unknown(visit);
}

static bool command(struct tl_visit *visit)
{
    const enum tl_command_kind kind = visit->command;
    if (visit->worth == TL_WORTH_PENDING)
        return kind == TL_COMMAND_LEAVE
                   ? tl_join_then_leave(visit)
                   : tl_wait_lookup(visit, pending_asked) || refuse_pending(visit);
    if (visit->worth == TL_WORTH_MOVED)
        return tl_refuse(&visit->refusal, TL_REFUSAL_MOVED, "%s", "");
    if (visit->worth == TL_WORTH_OVER)
        return tl_answer_view(visit); /* already done, or never possible */
    if ((kind == TL_COMMAND_RENEW || kind == TL_COMMAND_EXTEND) && !tl_visit_may_repeat(visit)) {
        visit->gives_ticket = kind == TL_COMMAND_EXTEND;
        return tl_answer_view(visit);
    }
    if (!tl_visit_may_send(visit))
        return false;
    return tl_wait_command(visit,
                           tl_outbox_command(visit->queue->outbox, kind, visit->ticket.visitor,
                                             visit->ticket.place, NULL),
                           tl_answer_command);
}

bool tl_handle_leave(struct tl_visit *visit)
{
    visit->command = TL_COMMAND_LEAVE;
    return tl_visit_ticket(visit, command);
}

bool tl_handle_complete(struct tl_visit *visit)
{
    visit->command = TL_COMMAND_COMPLETE;
    return tl_visit_ticket(visit, command);
}

bool tl_handle_renew(struct tl_visit *visit)
{
    visit->command = TL_COMMAND_RENEW;
    return tl_visit_ticket(visit, command);
}

bool tl_handle_extend(struct tl_visit *visit)
{
    visit->command = TL_COMMAND_EXTEND;
    return tl_visit_ticket(visit, command);
}
