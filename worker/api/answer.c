#include <stdio.h>
#include <string.h>

#include "common/auth/pass.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "worker/api/answer.h"
#include "worker/api/page_http.h"
#include "worker/api/view.h"
#include "worker/http/problem.h"
#include "worker/process/edge.h"
#include "worker/queue/hold.h"
#include "worker/report/worker_metrics.h"

/* The cookie outlives a closed browser, not the event. */
enum { COOKIE_MAX_AGE_S = 86400, COOKIE_BYTES = 512 };

struct tl_ticket tl_answer_ticket(const struct tl_room *room, const char *visitor, tl_place place)
{
    struct tl_ticket ticket = {.place = place,
                               .issued = (uint32_t)(tl_edge_now_ms(room->edge) / 1000)};
    if (room->line != NULL && tl_place_seq(place) != 0)
        ticket.generation = tl_line_generation(room->line);
    snprintf(ticket.visitor, sizeof(ticket.visitor), "%s", visitor);
    return ticket;
}

static void make_cookie(const struct tl_room *room, const char *ticket, char cookie[COOKIE_BYTES])
{
    bool https = strncmp(room->edge->config->http.public_url, "https:", 6) == 0;
    snprintf(cookie, COOKIE_BYTES, "tellerline_%s=%s; Path=/; Max-Age=%d; HttpOnly; SameSite=Lax%s",
             room->name, ticket, COOKIE_MAX_AGE_S, https ? "; Secure" : "");
}

/* The pass of an admitted visitor, good until the session's deadline. */
static bool sign_pass(const struct tl_room *room, const struct tl_view *view,
                      char text[TL_PASS_MAX])
{
    const struct tl_edge *edge = room->edge;
    struct tl_error err = {0};
    struct tl_pass pass = {.issued = view->redis_ms / 1000,
                           .expires = view->state.deadline_ms / 1000};
    snprintf(pass.visitor, sizeof(pass.visitor), "%s", view->visitor);
    tl_pass_id(room->name, tl_line_generation(room->line), view->place, pass.id);
    if (pass.expires <= pass.issued)
        return false; /* over within a second */
    if (tl_pass_sign(edge->secrets.pass_keys, edge->config->http.public_url, room->name, &pass,
                     text, &err))
        return true;
    tl_log(TL_LOG_ERROR, &(struct tl_log_fields){.queue = room->name, .error = &err},
           "a pass could not be signed");
    return false;
}

/* What a view says of the queue. */
static void fill_queue(const struct tl_room *room, struct tl_view *view)
{
    view->queue = room->name;
    view->settings = &room->settings;
    view->notice = room->notice_text[0] != '\0' ? room->notice_text : NULL;
    view->redis_ms = tl_edge_now_ms(room->edge);
    view->waiting = tl_line_waiting(room->line);
    view->active = tl_line_active(room->line);
}

/* What a view says of the place, beside its state; eta and pass are where the estimate and the pass
 * go. */
static void fill_place(struct tl_room *room, struct tl_view *view, struct tl_eta_range *eta,
                       char pass[TL_PASS_MAX], int64_t now_ms)
{
    view->redis_ms = tl_edge_now_ms(room->edge);
    if (view->state.status == TL_LINE_ACTIVE && sign_pass(room, view, pass))
        view->pass = pass;
    if (view->state.status == TL_LINE_WAITING && tl_room_open(room, tl_edge_now_ms(room->edge)) &&
        tl_eta_estimate(&room->eta, now_ms, view->state.ahead + 1, eta))
        view->eta = eta;
}

/* place: the view without what all views of the queue share. */
static void send_view(struct tl_room *room, struct tl_request *request, const struct tl_view *place,
                      const struct tl_ticket *give)
{
    char ticket[TL_TICKET_MAX];
    char cookie[COOKIE_BYTES];
    char text[TL_VIEW_MAX];
    struct tl_view view = *place;
    struct tl_answer answer = {.status = tl_place_seq(view.place) != 0 ? 200 : 202,
                               .type = "application/json"};
    if (give != NULL) {
        tl_ticket_sign(room->edge->secrets.keyring, room->name, give, ticket);
        make_cookie(room, ticket, cookie);
        view.ticket = ticket;
        answer.headers[answer.n_headers++] = (struct tl_header){"Set-Cookie", cookie};
    }
    fill_queue(room, &view);
    if (tl_page_wanted(request)) {
        tl_page_answer_view(room, request, &view, give != NULL ? cookie : NULL);
        return;
    }
    answer.length = tl_view_write(&view, text);
    answer.body = text;
    tl_request_answer(request, &answer);
}

void tl_answer_view(struct tl_room *room, struct tl_request *request,
                    const struct tl_ticket *ticket, bool give_ticket)
{
    int64_t now_ms = tl_clock_ms();
    bool known;
    struct tl_eta_range eta;
    char pass[TL_PASS_MAX];
    struct tl_view view = {.visitor = ticket->visitor,
                           .place = ticket->place,
                           .state = tl_room_look(room, ticket->place, &known)};
    if (!known) {
        if (!tl_edge_store_up(room->edge) || !tl_hold_for_lookup(room, request, ticket))
            tl_problem_answer(request, TL_PROBLEM_STORE,
                              "The store cannot be asked about this place; try again");
        return;
    }
    /* Whoever is called in the very answer to the join has yet to show up: only what comes next
     * claims the session. */
    if (!give_ticket || view.state.status == TL_LINE_WAITING)
        tl_room_greet(room, ticket->visitor, ticket->place, &view.state, now_ms);
    fill_place(room, &view, &eta, pass, now_ms);
    send_view(room, request, &view, give_ticket ? ticket : NULL);
}

size_t tl_answer_write(struct tl_room *room, const struct tl_ticket *ticket, int64_t now_ms,
                       struct tl_line_view *state, char *text)
{
    bool known;
    struct tl_eta_range eta;
    char pass[TL_PASS_MAX];
    struct tl_view view = {.visitor = ticket->visitor,
                           .place = ticket->place,
                           .state = tl_room_look(room, ticket->place, &known)};
    tl_room_greet(room, ticket->visitor, ticket->place, &view.state, now_ms);
    fill_place(room, &view, &eta, pass, now_ms);
    fill_queue(room, &view);
    *state = view.state;
    return tl_view_write(&view, text);
}

void tl_answer_pending(struct tl_room *room, struct tl_request *request, const char *visitor,
                       unsigned lane)
{
    struct tl_ticket ticket = tl_answer_ticket(room, visitor, tl_place_make(lane, 0));
    struct tl_view view = {.visitor = ticket.visitor, .place = ticket.place};
    tl_metrics_add(room->edge->metrics, TL_WORKER_JOINS_PENDING, 1);
    send_view(room, request, &view, &ticket);
}
