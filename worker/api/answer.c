/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "common/auth/pass.h"
#include "common/auth/reference.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "worker/api/answer.h"
#include "worker/api/cookie.h"
#include "worker/api/navigation.h"
#include "worker/api/restore.h"
#include "worker/api/view.h"
#include "worker/api/visitor.h"
#include "worker/http/problem.h"
#include "worker/http/renderer.h"
#include "worker/queue/tickets.h"
#include "worker/report/worker_metrics.h"

struct tl_ticket tl_answer_ticket(const struct tl_queue *queue, const struct tl_queue_env *env,
                                  const char *visitor, tl_place place, int64_t now_ms)
{
    struct tl_ticket ticket = {.place = place,
                               .issued = (uint32_t)(tl_queue_env_store_ms(env, now_ms) / 1000)};
    if (queue->line != NULL && tl_place_seq(place) != 0) {
        ticket.generation = tl_line_generation(queue->line);
        ticket.front = tl_queue_lane_front(queue, tl_place_lane(place));
        ticket.serial = tl_queue_serial(queue, place);
    }
    snprintf(ticket.visitor, sizeof(ticket.visitor), "%s", visitor);
    return ticket;
}

/* ---- views ---- */

/* A view, and the texts it points to. */
struct filled {
    struct tl_view view;
    struct tl_eta_range eta;
    char pass[TL_PASS_MAX];
    char ticket[TL_TICKET_MAX];
    char reference[TL_REFERENCE_MAX];
};

/* The pass of an admitted visitor, valid until the session's deadline: the one given before, if it
 * is kept, or a new one. False: none. */
static bool give_pass(const struct tl_api *api, const struct tl_queue *queue, struct filled *filled)
{
    const struct tl_view *view = &filled->view;
    struct tl_error err = {0};
    struct tl_pass pass = {.issued = view->store_ms / 1000,
                           .expires = view->state.deadline_ms / 1000,
                           .generation = tl_line_generation(queue->line),
                           .place = view->place,
                           .event = tl_line_event(queue->line)};
    snprintf(pass.visitor, sizeof(pass.visitor), "%s", view->visitor);
    tl_pass_id(view->queue,
               tl_lost_origin(queue->lost, tl_line_generation(queue->line), view->place),
               view->place, pass.id);
    if (pass.expires <= pass.issued)
        return false; /* over within a second */
    const char *kept = tl_kept_passes_find(api->kept_passes, &pass);
    if (kept != NULL) {
        memcpy(filled->pass, kept, strlen(kept) + 1);
        return true;
    }
    if (tl_pass_sign(api->secrets.pass_keys, api->config->http.public_url, view->queue, &pass,
                     filled->pass, &err)) {
        tl_kept_passes_keep(api->kept_passes, &pass, filled->pass);
        return true;
    }
    tl_log(TL_LOG_ERROR, &(struct tl_log_fields){.queue = view->queue, .error = &err},
           "a pass could not be signed");
    return false;
}

/* give: the ticket that the view carries, or NULL. ticket and queue are borrowed by the view. */
static void fill(const struct tl_api *api, struct tl_queue *queue, const struct tl_ticket *ticket,
                 const struct tl_ticket *give, const struct tl_line_view *state, int64_t now_ms,
                 struct filled *filled)
{
    struct tl_view *view = &filled->view;
    const struct tl_weather weather = tl_queue_weather(queue, now_ms);
    *view = (struct tl_view){.queue = queue->name,
                             .visitor = ticket->visitor,
                             .place = ticket->place,
                             .state = *state,
                             .settings = &queue->settings,
                             .mode = weather.mode,
                             .phase = weather.phase,
                             .waiting = weather.waiting,
                             .active = weather.active,
                             .store_ms = tl_queue_env_store_ms(api->env, now_ms),
                             .drawing = weather.drawing,
                             .draw = tl_lost_draw(queue->lost),
                             .recovering = weather.recovering,
                             .lost = tl_queue_lost(queue, ticket->place),
                             .as_of_ms = weather.as_of_ms};
    if (state->status == TL_LINE_ACTIVE && give_pass(api, queue, filled))
        view->pass = filled->pass;
    view->claimed = state->status == TL_LINE_ACTIVE && tl_claims_made(queue->claims, ticket->place);
    if (state->status == TL_LINE_WAITING) {
        view->has_admitted = tl_eta_admitted(queue->eta, now_ms, &view->admitted);
        enum tl_eta_reason reason;
        if (tl_queue_estimate(queue, state->ahead + 1, now_ms, &filled->eta, &reason))
            view->eta = &filled->eta;
        view->eta_reason = tl_eta_reason_name(reason);
    }
    if (give != NULL) {
        tl_ticket_sign(api->secrets.keyring, view->queue, give, filled->ticket);
        view->ticket = filled->ticket;
    }
}

/* The language only matters to a notice of several: choosing it is a good part of a status. */
static const char *language_of(const struct tl_api *api, const struct tl_queue *queue,
                               const struct tl_request *request)
{
    return tl_notice_varies(&queue->notice)
               ? tl_catalogue_code(tl_language_of(api->languages, request))
               : NULL;
}

/* What the operator says, in the visitor's language. */
static void add_notice(const struct tl_queue *queue, const char *language, struct filled *filled)
{
    const char *notice = tl_notice_text(&queue->notice, language);
    filled->view.notice = notice[0] != '\0' ? notice : NULL;
}

/* Only beside a ticket, as it stays what it is, and at the end, when visitors have questions. */
static void add_reference(const struct tl_api *api, struct filled *filled)
{
    struct tl_view *view = &filled->view;
    bool ended = view->state.status == TL_LINE_ENDED && !view->moved;
    if (view->ticket == NULL && !ended)
        return;
    tl_reference_write(api->secrets.keyring, view->queue, view->visitor, filled->reference);
    view->reference = filled->reference;
}

static bool lasts(const struct tl_line_view *state)
{
    return state->status == TL_LINE_WAITING || state->status == TL_LINE_ACTIVE;
}

/* Does the browser keep the ticket, of a place that is not over? Another place may be in the cookie
 * by now when one is over. Likewise at the end of a question with `wait`: it went out with the
 * cookie of up to a minute ago, and a place that was moved to this browser since has its only
 * ticket there. Other answers come at once, or as soon as the store has said something. */
static bool renews_cookie(const struct tl_request *request, const struct tl_view *view)
{
    bool linked = tl_request_query(request, "ticket") != NULL;
    bool waited = tl_request_query(request, "wait") != NULL;
    return lasts(&view->state) && !waited && tl_visitor_bearer(request) == NULL &&
           (linked ? tl_cookie_works(request, view->queue) : tl_cookie_sent(request, view->queue));
}

/* The view, with the cookie of the ticket that it carries, or with a renewed one. */
static void send_view(struct tl_api *api, const struct tl_queue *queue, struct tl_request *request,
                      struct filled *filled, int64_t now_ms)
{
    const struct tl_view *view = &filled->view;
    char cookie[TL_COOKIE_TEXT_MAX];
    char renewed[TL_TICKET_MAX];
    add_notice(queue, language_of(api, queue, request), filled);
    add_reference(api, filled);
    const char *ticket = view->ticket;
    if (ticket == NULL && renews_cookie(request, view)) {
        const struct tl_ticket fresh =
            tl_answer_ticket(queue, api->env, view->visitor, view->place, now_ms);
        tl_ticket_sign(api->secrets.keyring, view->queue, &fresh, renewed);
        ticket = renewed;
    }
    if (ticket != NULL)
        tl_cookie_write(api, request, view->queue, ticket,
                        tl_cookie_life_s(view->settings, view->store_ms), cookie);
    tl_render_view(request, view, ticket != NULL ? cookie : NULL);
}

void tl_answer_unknown(struct tl_api *api, const struct tl_held *held)
{
    struct tl_ticket joined = held->ticket;
    joined.invite = TL_TICKET_TRUSTED;
    if (held->give_ticket) /* a join that was accepted */
        tl_answer_pending(api, held->queue, held->request, &joined);
    else
        tl_render_refused(held->request, TL_REFUSAL_STORE,
                          "The store could not be asked about this place; try again");
}

/* 200 to a ticket that does not count any more: it says no more than that. */
static void answer_moved(struct tl_api *api, struct tl_queue *queue, struct tl_request *request,
                         const struct tl_ticket *ticket)
{
    struct filled filled;
    const struct tl_line_view ended = {.status = TL_LINE_ENDED, .reason = TL_REASON_MOVED};
    int64_t now_ms = tl_clock_ms();
    fill(api, queue, ticket, NULL, &ended, now_ms, &filled);
    filled.view.moved = true;
    send_view(api, queue, request, &filled, now_ms);
}

void tl_answer_view(struct tl_api *api, struct tl_queue *queue, struct tl_request *request,
                    const struct tl_ticket *ticket, bool give_ticket)
{
    int64_t now_us = tl_clock_us();
    int64_t now_ms = now_us / 1000;
    bool known;
    struct filled filled;
    if (tl_queue_outdated(queue, ticket) || /* recreated while the request waited */
        tl_queue_may_return(queue, ticket)) {
        struct tl_refusal refusal;
        (void)tl_restore_request(api, queue, request, ticket, &refusal);
        if (refusal.kind != TL_REFUSAL_HELD)
            tl_render_refusal(request, &refusal);
        return;
    }
    if (tl_queue_moved(queue, ticket)) {
        answer_moved(api, queue, request, ticket);
        return;
    }
    struct tl_line_view state = tl_queue_look(queue, ticket->place, &known);
    if (!known) {
        const struct tl_held held = {.queue = queue,
                                     .request = request,
                                     .ticket = *ticket,
                                     .give_ticket = give_ticket,
                                     .since_us = now_us};
        if (!tl_queue_env_store_up(api->env) || !tl_holds_lookup(api->holds, &held))
            tl_answer_unknown(api, &held);
        return;
    }
    /* A visitor who is called in the very answer to the join has yet to show up: only the next
     * request claims the session. */
    if (!give_ticket || state.status == TL_LINE_WAITING)
        tl_queue_touch(queue, ticket->visitor, ticket->place, &state, now_ms);
    struct tl_ticket fresh;
    const struct tl_ticket *give = give_ticket ? ticket : NULL;
    if (!give_ticket && ticket->outdated && lasts(&state)) { /* what the visitor has will not do */
        fresh = tl_answer_ticket(queue, api->env, ticket->visitor, ticket->place, now_ms);
        give = &fresh;
    }
    fill(api, queue, ticket, give, &state, now_ms, &filled);
    send_view(api, queue, request, &filled, now_ms);
}

void tl_answer_ended(struct tl_api *api, struct tl_queue *queue, struct tl_request *request,
                     const struct tl_ticket *ticket, enum tl_reason reason)
{
    struct filled filled;
    const struct tl_line_view ended = {.status = TL_LINE_ENDED, .reason = reason};
    int64_t now_ms = tl_clock_ms();
    fill(api, queue, ticket, NULL, &ended, now_ms, &filled);
    send_view(api, queue, request, &filled, now_ms);
}

void tl_answer_pending(struct tl_api *api, struct tl_queue *queue, struct tl_request *request,
                       const struct tl_ticket *joined)
{
    int64_t now_ms = tl_clock_ms();
    struct filled filled;
    const struct tl_line_view unknown = {.status = TL_LINE_UNKNOWN};
    struct tl_ticket ticket = tl_answer_ticket(
        queue, api->env, joined->visitor, tl_place_make(tl_place_lane(joined->place), 0), now_ms);
    ticket.invite = joined->invite;
    if (tl_place_seq(joined->place) == 0 && joined->issued != 0)
        ticket.issued = joined->issued;
    tl_metrics_add(api->env->metrics, TL_WORKER_JOINS_PENDING, 1);
    fill(api, queue, &ticket, &ticket, &unknown, now_ms, &filled);
    send_view(api, queue, request, &filled, now_ms);
}

size_t tl_answer_write_view(void *context, struct tl_queue *queue, const struct tl_ticket *ticket,
                            bool give_ticket, const struct tl_line_view *state,
                            const char *language, int64_t now_ms, char *text)
{
    const struct tl_api *api = context;
    struct filled filled;
    const struct tl_ticket give =
        tl_answer_ticket(queue, api->env, ticket->visitor, ticket->place, now_ms);
    fill(api, queue, ticket, give_ticket ? &give : NULL, state, now_ms, &filled);
    add_notice(queue, language, &filled);
    add_reference(api, &filled);
    return tl_view_write(&filled.view, text);
}

/* ---- JSON ---- */

static void render_json(void *context, struct tl_request *request, const struct tl_view *view,
                        const char *cookie)
{
    (void)context;
    char text[TL_VIEW_MAX];
    struct tl_answer answer = {.status = tl_view_pending(view) ? 202 : 200,
                               .type = "application/json",
                               .body = text,
                               .length = tl_view_write(view, text)};
    tl_answer_header(&answer, "Set-Cookie", cookie);
    tl_request_answer(request, &answer);
}

static void refuse_json(void *context, struct tl_request *request, const struct tl_refusal *refusal)
{
    (void)context;
    tl_problem_answer(request, refusal);
}

const struct tl_renderer tl_json_renderer = {.view = render_json, .refusal = refuse_json};
