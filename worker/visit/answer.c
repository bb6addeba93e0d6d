/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "common/auth/pass.h"
#include "common/auth/reference.h"
#include "common/base/log.h"
#include "common/base/text.h"
#include "worker/http/refusal.h"
#include "worker/http/router.h"
#include "worker/report/worker_metrics.h"
#include "worker/visit/answer.h"
#include "worker/visit/browser.h"
#include "worker/visit/view.h"

struct tl_ticket tl_answer_ticket(const struct tl_queue *queue, const char *visitor, tl_place place,
                                  int64_t now_ms)
{
    struct tl_ticket ticket = {
        .place = place, .issued = (uint32_t)(tl_queue_env_store_ms(queue->env, now_ms) / 1000)};
    if (queue->line != NULL && tl_place_seq(place) != 0) {
        ticket.generation = queue->line->generation;
        /* While the queue recovers, visitors come back ahead of those who are there. */
        if (!tl_lost_recovering(&queue->lost))
            ticket.front = tl_line_front(queue->line, tl_place_lane(place));
        ticket.serial = tl_queue_serial(queue, place);
    }
    (void)tl_text_copy(ticket.visitor, sizeof(ticket.visitor), visitor);
    return ticket;
}

/* ---- views ---- */

/* A view, and the texts it points to. */
struct filled {
    struct tl_view view;
    char pass[TL_PASS_MAX];
    char ticket[TL_TICKET_MAX];
    char reference[TL_REFERENCE_MAX];
};

/* The pass of an admitted visitor, valid until the session's deadline: the one given before, if it
 * is kept, or a new one. False: none. */
static bool give_pass(const struct tl_worker *worker, const struct tl_queue *queue,
                      struct filled *filled)
{
    const struct tl_view *view = &filled->view;
    struct tl_error err = {0};
    /* The estimate of the store's clock may be some ms ahead, and a verifier may allow none. */
    struct tl_pass pass = {.issued = view->store_ms / 1000 - 1,
                           .expires = view->state.deadline_ms / 1000,
                           .generation = queue->line->generation,
                           .place = view->place,
                           .event = queue->line->event};
    (void)tl_text_copy(pass.visitor, sizeof(pass.visitor), view->visitor);
    tl_pass_id(view->queue, tl_lost_origin(&queue->lost, queue->line->generation, view->place),
               view->place, pass.id);
    if (pass.expires <= view->store_ms / 1000)
        return false; /* over within a second */
    const struct tl_recent_entry *kept = tl_recent_find(worker->passes, pass.id);
    if (kept != NULL && kept->until == pass.expires && kept->generation == pass.generation) {
        memcpy(filled->pass, kept->text, strlen(kept->text) + 1);
        return true;
    }
    if (tl_pass_sign(worker->secrets.pass_keys, worker->config->http.public_url, view->queue, &pass,
                     filled->pass, &err)) {
        tl_recent_keep(worker->passes, pass.id,
                       &(struct tl_recent_entry){.until = pass.expires,
                                                 .generation = pass.generation,
                                                 .text = filled->pass});
        return true;
    }
    tl_log(TL_LOG_ERROR, &(struct tl_log_fields){.queue = view->queue, .error = &err},
           "a pass could not be signed");
    return false;
}

/* The view of the visit's place in its state. give: the ticket that it carries, or NULL. The view
 * borrows from the visit. */
static void fill(const struct tl_visit *visit, const struct tl_ticket *give, struct filled *filled)
{
    const struct tl_worker *worker = visit->worker;
    const int64_t now_ms = visit->now_ms;
    struct tl_queue *queue = visit->queue;
    const struct tl_ticket *ticket = &visit->ticket;
    const struct tl_line_view *state = &visit->state;
    struct tl_view *view = &filled->view;
    const struct tl_weather *weather = tl_queue_weather(queue, now_ms);
    *view = (struct tl_view){.queue = queue->name,
                             .visitor = ticket->visitor,
                             .place = ticket->place,
                             .state = *state,
                             .settings = &queue->settings,
                             .mode = weather->mode,
                             .phase = weather->phase,
                             .waiting = weather->waiting,
                             .active = weather->active,
                             .store_ms = tl_queue_env_store_ms(worker->env, now_ms),
                             .drawing = weather->drawing,
                             .draw = &queue->lost.known.draw,
                             .recovering = weather->recovering,
                             .lost = tl_queue_lost(queue, ticket->place),
                             .as_of_ms = weather->as_of_ms,
                             .shared = &queue->shared,
                             .weather = weather->version};
    if (state->status == TL_LINE_ACTIVE && give_pass(worker, queue, filled))
        view->pass = filled->pass;
    view->claimed =
        state->status == TL_LINE_ACTIVE && tl_claims_made(&queue->claims, ticket->place);
    if (state->status == TL_LINE_WAITING) {
        view->has_admitted = tl_eta_admitted(&queue->eta, now_ms, &view->admitted);
        enum tl_eta_reason reason;
        struct tl_eta_range eta = {0};
        view->has_eta = tl_queue_estimate(queue, state->ahead + 1, now_ms, &eta, &reason);
        view->eta_low_s = eta.low_s;
        view->eta_median_s = eta.median_s;
        view->eta_high_s = eta.high_s;
        view->eta_reason = tl_eta_reason_name(reason);
    }
    if (give != NULL) {
        tl_ticket_sign(worker->secrets.keyring, view->queue, give, filled->ticket);
        view->ticket = filled->ticket;
    }
}

/* What the operator says, in this language; and the reference: only beside a ticket, as it stays
 * what it is, and at the end, when visitors have questions. */
static void add_texts(const struct tl_visit *visit, const char *language, struct filled *filled)
{
    struct tl_view *view = &filled->view;
    const char *notice = tl_notice_text(&visit->queue->notice, language);
    view->notice = notice[0] != '\0' ? notice : NULL;
    bool ended = view->state.status == TL_LINE_ENDED && !view->moved;
    if (view->ticket == NULL && !ended)
        return;
    tl_reference_write(visit->worker->secrets.keyring, view->queue, view->visitor,
                       filled->reference);
    view->reference = filled->reference;
}

/* Does the browser keep the ticket, of a place that is not over? Another place may be in the cookie
 * by now when one is over. Likewise at the end of a question with `wait`: it went out with the
 * cookie of up to a minute ago, and a place that was moved to this browser since has its only
 * ticket there. Other answers come at once, or as soon as the store has said something. */
static bool renews_cookie(const struct tl_visit *visit, const struct tl_view *view)
{
    const struct tl_request *request = visit->request;
    bool lasts = view->state.status == TL_LINE_WAITING || view->state.status == TL_LINE_ACTIVE;
    bool linked = tl_request_query(request, "ticket") != NULL;
    bool waited = tl_request_query(request, "wait") != NULL;
    return lasts && !waited && tl_visit_bearer(visit) == NULL &&
           (linked ? tl_cookie_works(visit) : tl_cookie_sent(visit));
}

/* The view, with the cookie of the ticket that it carries, or with a renewed one. */
static bool send_view(const struct tl_visit *visit, struct filled *filled)
{
    const struct tl_view *view = &filled->view;
    char cookie[TL_COOKIE_TEXT_MAX];
    char renewed[TL_TICKET_MAX];
    /* Choosing the language is a good part of a status. It only matters to a notice of several. */
    const bool varies = tl_notice_varies(&visit->queue->notice);
    add_texts(visit, varies ? tl_language_of(visit)->code : NULL, filled);
    const char *ticket = view->ticket;
    if (ticket == NULL && renews_cookie(visit, view)) {
        const struct tl_ticket fresh =
            tl_answer_ticket(visit->queue, view->visitor, view->place, visit->now_ms);
        tl_ticket_sign(visit->worker->secrets.keyring, view->queue, &fresh, renewed);
        ticket = renewed;
    }
    if (ticket != NULL)
        tl_cookie_write(visit, ticket, cookie);
    tl_render_view(visit->request, view, ticket != NULL ? cookie : NULL);
    return true;
}

bool tl_answer_ended(struct tl_visit *visit, enum tl_reason reason)
{
    struct filled filled;
    visit->state = (struct tl_line_view){.status = TL_LINE_ENDED, .reason = reason};
    fill(visit, NULL, &filled);
    filled.view.moved = reason == TL_REASON_MOVED;
    return send_view(visit, &filled);
}

bool tl_answer_unknown(struct tl_visit *visit)
{
    if (!visit->gives_ticket)
        return tl_refuse(&visit->refusal, TL_REFUSAL_STORE,
                         "The store could not be asked about this place; try again");
    visit->ticket.invite = TL_TICKET_TRUSTED; /* a join that was accepted */
    return tl_answer_pending(visit);
}

/* The store has answered. */
static bool answer_asked(struct tl_visit *visit)
{
    if (visit->wait.known || tl_queue_outdated(visit->queue, &visit->ticket))
        return tl_answer_anew(visit);
    return tl_answer_unknown(visit);
}

static bool answer_known(struct tl_visit *visit)
{
    const struct tl_ticket *ticket = &visit->ticket;
    const int64_t now_ms = visit->now_ms;
    struct filled filled;
    /* A visitor who is called in the very answer to the join has yet to show up: only the next
     * request claims the session. */
    if (!visit->gives_ticket || visit->state.status == TL_LINE_WAITING)
        tl_queue_touch(visit->queue, ticket->visitor, ticket->place, &visit->state, now_ms);
    struct tl_ticket fresh;
    const struct tl_ticket *give = visit->gives_ticket ? ticket : NULL;
    if (give == NULL && ticket->outdated &&
        tl_visit_is_held(visit)) { /* what they have will not do */
        fresh = tl_answer_ticket(visit->queue, ticket->visitor, ticket->place, now_ms);
        give = &fresh;
    }
    fill(visit, give, &filled);
    return send_view(visit, &filled);
}

bool tl_answer_view(struct tl_visit *visit)
{
    switch (visit->worth) {
    case TL_WORTH_AHEAD: /* recreated while the request waited */
    case TL_WORTH_VOID:
    case TL_WORTH_MAY_RETURN:
        return tl_visit_restore(visit, 0, 0);
    case TL_WORTH_MOVED:
        return tl_answer_ended(visit, TL_REASON_MOVED);
    case TL_WORTH_ASK_STORE:
        return tl_wait_lookup(visit, answer_asked) || tl_answer_unknown(visit);
    default:
        return answer_known(visit);
    }
}

bool tl_answer_anew(struct tl_visit *visit)
{
    tl_visit_judge(visit);
    return tl_answer_view(visit);
}

/* The store lost its data while the command was on its way. If the place comes back, the request is
 * handled again, with the ticket that it brought. */
static bool answer_lost_command(struct tl_visit *visit)
{
    if (tl_queue_adopt(visit->queue, &visit->ticket) ||
        tl_queue_may_return(visit->queue, &visit->ticket))
        return tl_visit_again(visit);
    return tl_refuse(&visit->refusal, TL_REFUSAL_OLD_GENERATION, "%s", "");
}

/* The answer to an EXTEND must not claim the session: it carries the ticket, like that to a join.
 */
bool tl_answer_command(struct tl_visit *visit)
{
    const struct tl_pending_result *result = visit->wait.result;
    struct tl_refusal *refusal = &visit->refusal;
    if (tl_queue_outdated(visit->queue, &visit->ticket))
        return answer_lost_command(visit);
    if (result == NULL)
        return tl_refuse(refusal, TL_REFUSAL_UNKNOWN_OUTCOME,
                         "The command is in progress; ask for the status to see its outcome");
    if (result->end == TL_PENDING_REFUSED)
        return tl_refuse(refusal, TL_REFUSAL_STORE,
                         "The store did not take the command; try again");
    if (result->end == TL_PENDING_LOST)
        return tl_refuse(refusal, TL_REFUSAL_UNKNOWN_OUTCOME,
                         "The command was taken, but its outcome is not known; ask for the status");
    if (result->outcome == TL_OUTCOME_WAITING)
        return tl_refuse(refusal, TL_REFUSAL_NOT_ADMITTED, "This place is still waiting");
    visit->gives_ticket = visit->wait.pending->kind == TL_COMMAND_EXTEND;
    return tl_answer_anew(visit);
}

bool tl_answer_pending(struct tl_visit *visit)
{
    struct filled filled;
    const struct tl_ticket joined = visit->ticket;
    visit->ticket = tl_answer_ticket(visit->queue, joined.visitor,
                                     tl_place_make(tl_place_lane(joined.place), 0), visit->now_ms);
    visit->ticket.invite = joined.invite;
    if (tl_place_seq(joined.place) == 0 && joined.issued != 0)
        visit->ticket.issued = joined.issued;
    visit->state = (struct tl_line_view){.status = TL_LINE_UNKNOWN};
    tl_metrics_add(visit->worker->env->metrics, TL_WORKER_JOINS_PENDING, 1);
    fill(visit, &visit->ticket, &filled);
    return send_view(visit, &filled);
}

size_t tl_answer_write_view(const struct tl_visit *visit, const char *language, char *text)
{
    const struct tl_ticket *ticket = &visit->ticket;
    struct filled filled;
    const struct tl_ticket give =
        tl_answer_ticket(visit->queue, ticket->visitor, ticket->place, visit->now_ms);
    fill(visit, visit->gives_ticket ? &give : NULL, &filled);
    add_texts(visit, language, &filled);
    return tl_view_write(&filled.view, text);
}

/* ---- JSON ---- */

bool tl_answer_json(const struct tl_visit *visit, unsigned status, struct tl_json *json)
{
    tl_request_answer(visit->request, &(struct tl_answer){.status = status,
                                                          .type = "application/json",
                                                          .body = json->text,
                                                          .length = tl_json_end(json)});
    return true;
}

static void render_json(struct tl_request *request, const struct tl_view *view, const char *cookie)
{
    char text[TL_VIEW_MAX];
    struct tl_answer answer = {.status = tl_view_state(view) == TL_PAGE_PENDING ? 202 : 200,
                               .type = "application/json",
                               .body = text,
                               .length = tl_view_write(view, text)};
    tl_answer_header(&answer, "Set-Cookie", cookie);
    tl_request_answer(request, &answer);
}

const struct tl_renderer tl_json_renderer = {.view = render_json, .refusal = tl_problem_answer};
