/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "common/auth/jwt_keys.h"
#include "common/auth/pass.h"
#include "common/base/clock.h"
#include "worker/api/bypass.h"
#include "worker/api/check.h"
#include "worker/api/cookie.h"
#include "worker/api/misuse.h"
#include "worker/api/restore.h"
#include "worker/api/through.h"
#include "worker/api/visitor.h"
#include "worker/http/renderer.h"
#include "worker/queue/tickets.h"

enum { ADDRESS_MAX = 1024, LOCATION_MAX = 256 + TL_QUEUE_NAME_MAX + 3 * ADDRESS_MAX + 32 };

static void percent_encode(const char *text, char *out, size_t size)
{
    static const char hex[] = "0123456789ABCDEF";
    static const char plain[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
    size_t n = 0;
    for (; *text != '\0' && n + 4 <= size; text++) {
        if (strchr(plain, *text) != NULL) {
            out[n++] = *text;
            continue;
        }
        out[n++] = '%';
        out[n++] = hex[(unsigned char)*text >> 4];
        out[n++] = hex[(unsigned char)*text & 15];
    }
    out[n] = '\0';
}

/* One request for a check. */
struct check {
    const struct tl_api *api;
    struct tl_request *request;
    const char *name;       /* of the queue */
    struct tl_queue *queue; /* NULL: its line is not loaded */
    int64_t now_ms;
};

static void answer_in(struct tl_request *request, const char *visitor)
{
    struct tl_answer answer = {.status = 204};
    tl_answer_header(&answer, "X-Tellerline-Visitor", visitor);
    tl_request_answer(request, &answer);
}

/* The same past the line. by: "network", "header" or "invite"; NULL: everyone gets in. visitor may
 * be NULL. */
static void answer_past(struct tl_request *request, const char *visitor, const char *by)
{
    struct tl_answer answer = {.status = 204};
    tl_answer_header(&answer, "X-Tellerline-Visitor", visitor);
    tl_answer_header(&answer, "X-Tellerline-Bypass", by);
    tl_answer_header(&answer, "X-Tellerline-Mode", by == NULL ? "passthrough" : NULL);
    tl_request_answer(request, &answer);
}

/* The mode, if it is not open; else NULL. */
static const char *mode_of(const struct check *check)
{
    enum tl_queue_mode mode =
        check->queue != NULL ? tl_queue_weather(check->queue, check->now_ms).mode : TL_MODE_OPEN;
    return mode != TL_MODE_OPEN ? tl_mode_name(mode) : NULL;
}

/* 401, and where to wait: the waiting page, with the address that the visitor wanted, as the
 * gateway says it. That is only a proposal: the page checks where it may send people. One that is
 * too long is left out. */
static void answer_out(const struct check *check)
{
    struct tl_request *request = check->request;
    static const char body[] =
        "{\"type\":\"/problems/not-admitted\",\"title\":\"Not admitted\",\"status\":401}\n";
    const char *whole = tl_request_header(request, "X-Original-URL");
    const char *scheme = tl_request_header(request, "X-Forwarded-Proto");
    const char *host = tl_request_header(request, "X-Forwarded-Host");
    const char *path = tl_request_header(request, "X-Forwarded-Uri");
    char address[ADDRESS_MAX] = "";
    char encoded[3 * ADDRESS_MAX];
    char location[LOCATION_MAX];
    int n = 0;
    if (whole != NULL)
        n = snprintf(address, sizeof(address), "%s", whole);
    else if (scheme != NULL && host != NULL && path != NULL)
        n = snprintf(address, sizeof(address), "%s://%s%s", scheme, host, path);
    if (n < 0 || (size_t)n >= sizeof(address))
        address[0] = '\0';
    percent_encode(address, encoded, sizeof(encoded));
    n = snprintf(location, sizeof(location), "%s/q/%s%s%s", check->api->config->http.public_url,
                 check->name, encoded[0] != '\0' ? "?return=" : "", encoded);
    struct tl_answer answer = {.status = 401,
                               .type = "application/problem+json",
                               .body = body,
                               .length = sizeof(body) - 1};
    bool fits = n > 0 && (size_t)n < sizeof(location);
    tl_answer_header(&answer, "X-Tellerline-Mode", mode_of(check));
    tl_answer_header(&answer, "X-Tellerline-Location", fits ? location : NULL);
    tl_answer_header(&answer, "WWW-Authenticate", "Bearer");
    tl_request_answer(request, &answer);
}

/* Is the session at this place active now? The request counts as a sign of life. Needs a line. */
static bool is_active(const struct check *check, const struct tl_ticket *ticket)
{
    bool known;
    struct tl_queue *queue = check->queue;
    if (tl_place_seq(ticket->place) == 0 || tl_queue_outdated(queue, ticket) ||
        tl_queue_serial(queue, ticket->place) > ticket->serial)
        return false;
    struct tl_line_view state = tl_queue_look(queue, ticket->place, &known);
    if (state.status != TL_LINE_ACTIVE ||
        state.deadline_ms <= tl_queue_env_store_ms(check->api->env, check->now_ms))
        return false;
    tl_queue_use(queue, ticket->visitor, ticket->place, &state, check->now_ms);
    return true;
}

/* ---- passes ---- */

enum verdict {
    NO_PASS,
    COUNTS,
    VOID,    /* its session is over */
    HELD,    /* to be decided later */
    REFUSED, /* it was not looked at */
};

/* The line of this process does not know of the event yet after which the session was active. */
static enum verdict wait_for_event(const struct check *check, const struct tl_ticket *ticket,
                                   uint64_t event)
{
    const struct tl_held held = {.queue = check->queue,
                                 .request = check->request,
                                 .ticket = *ticket,
                                 .since_us = check->now_ms * 1000};
    /* Without the store nothing is learned by waiting, and the pass is the newest there is. */
    if (!tl_queue_env_store_up(check->api->env))
        return COUNTS;
    return tl_holds_event(check->api->holds, &held, event) ? HELD : VOID;
}

/* What the line says of a valid pass. */
static enum verdict ask_line(const struct check *check, const struct tl_pass *pass)
{
    struct tl_queue *queue = check->queue;
    struct tl_ticket ticket = tl_restore_ticket(pass);
    struct tl_refusal refusal;
    if (tl_queue_recovering(queue))
        return tl_restore_session(queue, pass) ? COUNTS : VOID;
    (void)tl_queue_adopt(queue, &ticket);
    ticket.serial = tl_queue_serial(queue, ticket.place); /* who has the pass has the place */
    if (pass->generation == tl_line_generation(queue->line))
        tl_lost_keep_pass(queue->lost, queue->line, ticket.place, pass->expires * 1000,
                          pass->event);
    if (is_active(check, &ticket) || tl_queue_behind(queue, &ticket, check->now_ms))
        return COUNTS;
    if (tl_queue_may_return(queue, &ticket)) {
        (void)tl_restore_pass(check->api, queue, check->request, pass, &refusal);
        return refusal.kind == TL_REFUSAL_HELD ? HELD : COUNTS; /* nobody can say that it is over */
    }
    if (tl_queue_outdated(queue, &ticket) || pass->event <= tl_line_event(queue->line))
        return VOID;
    return wait_for_event(check, &ticket, pass->event);
}

static enum verdict judge_pass(const struct check *check, struct tl_pass *pass,
                               struct tl_refusal *refusal)
{
    const struct tl_api *api = check->api;
    const char *bearer = tl_visitor_bearer(check->request);
    int64_t store_s = tl_queue_env_store_ms(api->env, check->now_ms) / 1000;
    const struct tl_jwt_keys *keys = api->secrets.pass_keys;
    struct tl_error err = {0};
    if (bearer == NULL || strchr(bearer, '.') == NULL) /* a ticket, or an API key */
        return NO_PASS;
    const struct tl_visitor_tokens tokens = {.kind = TL_LIMITER_PASSES,
                                             .queue = check->name,
                                             .request = check->request,
                                             .now_ms = check->now_ms};
    if (!tl_visitor_may_verify(api, &tokens, keys, bearer, refusal))
        return REFUSED;
    if (!tl_pass_verify(keys, api->config->http.public_url, check->name, bearer, strlen(bearer),
                        store_s, pass, &err)) {
        tl_visitor_refused(api, &tokens, keys, bearer);
        return NO_PASS;
    }
    return check->queue == NULL ? COUNTS : ask_line(check, pass);
}

/* Lets the visitor with this place in, unless another client came first to the session. Without a
 * line nobody knows who did. */
static void open_gate(const struct check *check, const char *visitor, uint64_t generation,
                      tl_place place)
{
    struct tl_refusal refusal;
    if (check->queue == NULL || tl_misuse_session(check->api, check->queue, check->request, visitor,
                                                  generation, place, &refusal))
        answer_in(check->request, visitor);
    else
        tl_render_refusal(check->request, &refusal);
}

/* The queue is overbooked, and the visitor has come: holds the request until it is known whether
 * there is a counter. Without the store, or memory, that stays unknown, and the gate open. */
static bool hold_claim(const struct check *check, const char *visitor, uint64_t generation,
                       tl_place place)
{
    struct tl_held held = {.queue = check->queue,
                           .request = check->request,
                           .gate = true,
                           .ticket = {.generation = generation, .place = place},
                           .since_us = tl_clock_us()};
    struct tl_refusal refusal;
    if (check->queue == NULL || !tl_queue_must_claim(check->queue, place) ||
        !tl_visitor_may_send(check->api, &refusal))
        return false;
    snprintf(held.ticket.visitor, sizeof(held.ticket.visitor), "%s", visitor);
    struct tl_pending_command *pending =
        tl_outbox_command(check->queue->outbox, TL_COMMAND_RENEW, visitor, place);
    return pending != NULL && tl_holds_command(check->api->holds, &held, pending);
}

static void let_in(const struct check *check, const char *visitor, uint64_t generation,
                   tl_place place)
{
    if (!hold_claim(check, visitor, generation, place))
        open_gate(check, visitor, generation, place);
}

void tl_check_claimed(const struct tl_api *api, const struct tl_held *held,
                      const struct tl_pending_result *result)
{
    const struct check check = {.api = api,
                                .request = held->request,
                                .name = held->queue->name,
                                .queue = held->queue,
                                .now_ms = tl_clock_ms()};
    if (result == NULL || result->end != TL_PENDING_APPLIED)
        tl_render_refused(held->request, TL_REFUSAL_STORE,
                          "Whether the session can be claimed is "
                          "not known yet; try again");
    else if (result->outcome == TL_OUTCOME_DONE)
        open_gate(&check, held->ticket.visitor, held->ticket.generation, held->ticket.place);
    else
        answer_out(&check);
}

void tl_check_caught_up(void *context, const struct tl_held *held)
{
    const struct check check = {.api = context,
                                .request = held->request,
                                .name = held->queue->name,
                                .queue = held->queue,
                                .now_ms = tl_clock_ms()};
    struct tl_ticket ticket = held->ticket;
    ticket.serial = tl_queue_serial(held->queue, ticket.place);
    if (is_active(&check, &ticket) || tl_queue_recovering(held->queue))
        let_in(&check, ticket.visitor, ticket.generation, ticket.place);
    else
        answer_out(&check);
}

/* ---- GET /v1/queues/{q}/check ---- */

/* Everyone gets in. Sessions go on as before: the visitor of one is named, and seen. */
static void pass_through(const struct check *check)
{
    struct tl_ticket ticket;
    bool active = check->queue != NULL &&
                  tl_visitor_ticket(check->api, check->request, check->name, &ticket) &&
                  is_active(check, &ticket);
    tl_through_count(check->api, check->name);
    answer_past(check->request, active ? ticket.visitor : NULL, NULL);
}

/* Does the request bring something that should open the gate? */
static bool has_credential(const struct check *check)
{
    return tl_visitor_bearer(check->request) != NULL || tl_cookie_sent(check->request, check->name);
}

/* The same for one that does not. */
static void answer_failed(const struct check *check)
{
    tl_misuse_failed(check->api, check->request, check->name);
    answer_out(check);
}

/* Fail open for unknown visitors while Redis is down? */
static bool fails_open(const struct check *check)
{
    const struct tl_api *api = check->api;
    if (check->queue != NULL)
        return !tl_queue_env_store_up(api->env) &&
               check->queue->settings.on_store_error == TL_STORE_ERROR_OPEN;
    /* Its settings were never loaded. */
    const struct tl_queue_settings *configured =
        tl_config_queue(api->config->queues, api->config->n_queues, check->name);
    return configured != NULL && configured->on_store_error == TL_STORE_ERROR_OPEN;
}

/* A visitor known to be active stays so until the deadline, also while the store is down. A pass
 * counts while its session is active, or while nobody can know: no line is loaded, the queue
 * recovers, or the store is down. For all others nothing new can be learned then: on_store_error
 * decides. */
bool tl_handle_check(void *context, struct tl_request *request, const char *name,
                     struct tl_refusal *refusal)
{
    const struct tl_api *api = context;
    struct tl_queue *queue = tl_queues_find(api->queues, name);
    struct check check = {.api = api, .request = request, .name = name, .now_ms = tl_clock_ms()};
    struct tl_ticket ticket;
    struct tl_pass pass;
    if (queue != NULL && queue->line != NULL)
        check.queue = queue;
    if (tl_through_applies(api, name)) {
        pass_through(&check);
        return true;
    }
    if (queue == NULL && api->env->draining) /* queues are freed before the last answers are sent */
        return tl_refuse(refusal, TL_REFUSAL_STOPPING, "%s", "");
    if (tl_visitor_no_queue(api, name) && tl_queue_env_store_up(api->env))
        return tl_refuse(refusal, TL_REFUSAL_NO_QUEUE, "%s", "");
    const bool has_ticket = check.queue != NULL && tl_visitor_ticket(api, request, name, &ticket);
    if (has_ticket)
        (void)tl_queue_adopt(queue, &ticket);
    if (has_ticket && is_active(&check, &ticket)) {
        let_in(&check, ticket.visitor, ticket.generation, ticket.place);
        return true;
    }
    const char *by = tl_bypass_of(api, request, name, check.now_ms);
    if (by != NULL) {
        answer_past(request, NULL, by);
        return true;
    }
    enum verdict verdict = judge_pass(&check, &pass, refusal);
    if (verdict == HELD || verdict == REFUSED)
        return verdict == HELD;
    if (verdict == COUNTS)
        let_in(&check, pass.visitor, pass.generation, pass.place);
    else if (has_ticket && tl_queue_may_return(queue, &ticket))
        return tl_restore_request(api, check.queue, request, &ticket, refusal);
    else if (verdict == NO_PASS && fails_open(&check))
        answer_in(request, NULL);
    else if (has_credential(&check))
        answer_failed(&check);
    else
        answer_out(&check);
    return true;
}
