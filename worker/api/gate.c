/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The check of gateways; and past the line, without a place, everyone, in the mode
 * passthrough; and staff, monitoring and crawlers with a bypass, by network, by a header that a
 * trusted proxy sets, or by an invite with the claim `bypass`. Each is counted, by queue too, and
 * those with a bypass are logged, at most once in ten seconds.
 */
#include <stdio.h>
#include <string.h>

#include "common/auth/jwt_keys.h"
#include "common/auth/pass.h"
#include "common/base/json_text.h"
#include "common/base/text.h"
#include "worker/api/handlers.h"
#include "worker/page/view.h"
#include "worker/report/worker_metrics.h"
#include "worker/visit/answer.h"
#include "worker/visit/browser.h"

enum {
    ADDRESS_MAX = 1024,
    LOCATION_MAX = 256 + TL_QUEUE_NAME_MAX + 3 * ADDRESS_MAX + 32,
    LOG_EVERY_MS = 10000,
    COOKIE_MAX = 4096,
    INVITE_MAX = COOKIE_MAX - 256,
    COOKIE_NAME_MAX = TL_QUEUE_NAME_MAX + 32
};

/* ---- everyone ---- */

/* Does everyone get into this queue now, by the file or by its mode in the store? Counts one. */
static bool lets_everyone_in(const struct tl_visit *visit)
{
    const struct tl_worker *worker = visit->worker;
    const struct tl_queue *queue = tl_queues_find(&worker->queues, visit->name);
    if (!tl_queue_env_lets_in(worker->env, visit->name) &&
        (queue == NULL || queue->settings.mode != TL_MODE_PASSTHROUGH))
        return false;
    tl_metrics_add(worker->env->metrics, TL_WORKER_PASSED_THROUGH, 1);
    tl_misuse_count(worker, visit->name, TL_QUEUE_PASSED_THROUGH);
    return true;
}

static const struct tl_queue_settings *configured(const struct tl_visit *visit)
{
    const struct tl_config *config = visit->worker->config;
    return tl_config_queue(config->queues, config->n_queues, visit->name);
}

/* Answers a join or the page of one who gets in without a place. cookie: for Set-Cookie, or NULL.
 * Returns true. */
static bool answer_through(const struct tl_visit *visit, const char *cookie)
{
    const struct tl_queue *queue = tl_queues_find(&visit->worker->queues, visit->name);
    const bool loaded = queue != NULL && queue->line != NULL;
    const struct tl_view view = {.queue = visit->name,
                                 .through = true,
                                 .settings = loaded ? &queue->settings : configured(visit)};
    tl_render_view(visit->request, &view, cookie);
    return true;
}

bool tl_past_everyone(const struct tl_visit *visit)
{
    return lets_everyone_in(visit) && answer_through(visit, NULL);
}

/* ---- who has a bypass ---- */

/* No ticket's cookie has this name: names of queues have no capital letters. */
static void cookie_name(const char *queue, char name[COOKIE_NAME_MAX])
{
    snprintf(name, COOKIE_NAME_MAX, "tellerline_BYPASS_%s", queue);
}

bool tl_past_invite(struct tl_visit *visit, const char *text, struct tl_invite *invite)
{
    const struct tl_worker *worker = visit->worker;
    struct tl_error err = {0};
    int64_t store_s = tl_queue_env_store_ms(worker->env, visit->now_ms) / 1000;
    const struct tl_jwt_keys *keys = worker->secrets.invite_keys;
    if (!tl_visit_may_verify(visit, TL_LIMITER_INVITES, keys, text))
        return false;
    if (tl_invite_verify(keys, visit->name, text, strlen(text), store_s, invite, &err))
        return true;
    tl_visit_unverified(visit, TL_LIMITER_INVITES, keys, text);
    return tl_refuse(&visit->refusal, TL_REFUSAL_BAD_INVITE, "%s", err.text);
}

static bool by_header(const struct tl_visit *visit)
{
    const struct tl_worker *worker = visit->worker;
    struct tl_address peer;
    const char *name = worker->config->bypass.header;
    const char *value = name[0] != '\0' ? tl_request_header(visit->request, name) : NULL;
    return value != NULL && value[0] != '\0' && tl_request_peer(visit->request, &peer) &&
           tl_networks_contain(worker->proxies, &peer);
}

/* In the cookie that tl_past_by_invite writes, or in a header. */
static bool by_invite(struct tl_visit *visit)
{
    char name[COOKIE_NAME_MAX];
    struct tl_invite invite;
    cookie_name(visit->name, name);
    const char *text = tl_request_header(visit->request, "X-Tellerline-Invite");
    if (text == NULL)
        text = tl_request_cookie(visit->request, name);
    return text != NULL && tl_past_invite(visit, text, &invite) && invite.bypass;
}

/* Records one who got in. */
static void note(const struct tl_visit *visit, const char *by)
{
    struct tl_worker *worker = visit->worker;
    char text[TL_PREFIX_TEXT_MAX];
    const struct tl_prefix network = tl_visit_network(visit);
    unsigned suppressed;
    tl_metrics_add(worker->env->metrics, TL_WORKER_BYPASSED, 1);
    tl_misuse_count(worker, visit->name, TL_QUEUE_BYPASSED);
    if (!tl_log_allow(&worker->bypass_log, visit->now_ms, LOG_EVERY_MS, &suppressed))
        return;
    tl_prefix_format(&network, text);
    tl_log(TL_LOG_INFO, &(struct tl_log_fields){.queue = visit->name},
           "%s got in past the line by %s; %u more since the last such line", text, by, suppressed);
}

bool tl_past_by_invite(struct tl_visit *visit, const char *text, const struct tl_invite *invite)
{
    const struct tl_worker *worker = visit->worker;
    char name[COOKIE_NAME_MAX], cookie[COOKIE_MAX];
    int64_t left_s = invite->expires - tl_queue_env_store_ms(worker->env, visit->now_ms) / 1000;
    if (strlen(text) > INVITE_MAX || left_s <= 0)
        return tl_refuse(&visit->refusal, TL_REFUSAL_BAD_INVITE, "It has expired, or is too long");
    cookie_name(visit->name, name);
    snprintf(cookie, sizeof(cookie), "%s=%s; Path=/; Max-Age=%lld; HttpOnly; SameSite=Lax%s", name,
             text, (long long)left_s, tl_cross_site_https(visit) ? "; Secure" : "");
    note(visit, "invite");
    return answer_through(visit, cookie);
}

/* ---- answers to a check ---- */

/* 204, with one more header (NULL: none). visitor may be NULL. Returns true. */
static bool answer_in(const struct tl_visit *visit, const char *visitor, const char *header,
                      const char *value)
{
    struct tl_answer answer = {.status = 204};
    tl_answer_header(&answer, "X-Tellerline-Visitor", visitor);
    tl_answer_header(&answer, header, value);
    tl_request_answer(visit->request, &answer);
    return true;
}

/* The mode, if it is not open; else NULL. */
static const char *mode_of(const struct tl_visit *visit)
{
    enum tl_queue_mode mode =
        visit->queue != NULL ? tl_queue_weather(visit->queue, visit->now_ms)->mode : TL_MODE_OPEN;
    return mode != TL_MODE_OPEN ? tl_mode_name(mode) : NULL;
}

/* 401, and where to wait: the waiting page, with the address that the visitor wanted, as the
 * gateway says it. That is only a proposal: the page checks where it may send people. One that is
 * too long is left out. */
static bool answer_out(const struct tl_visit *visit)
{
    struct tl_request *request = visit->request;
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
    (void)tl_percent_encode(address, encoded, sizeof(encoded)); /* it fits */
    n = snprintf(location, sizeof(location), "%s/q/%s%s%s", visit->worker->config->http.public_url,
                 visit->name, encoded[0] != '\0' ? "?return=" : "", encoded);
    struct tl_answer answer = {.status = 401,
                               .type = "application/problem+json",
                               .body = body,
                               .length = sizeof(body) - 1};
    bool fits = n > 0 && (size_t)n < sizeof(location);
    tl_answer_header(&answer, "X-Tellerline-Mode", mode_of(visit));
    tl_answer_header(&answer, "X-Tellerline-Location", fits ? location : NULL);
    tl_answer_header(&answer, "WWW-Authenticate", "Bearer");
    tl_request_answer(request, &answer);
    return true;
}

/* Is the session of the visit's ticket active now, as it was judged? The request counts as a sign
 * of life. */
static bool is_active(const struct tl_visit *visit)
{
    const int64_t now_ms = visit->now_ms;
    if (visit->worth != TL_WORTH_ACTIVE ||
        visit->state.deadline_ms <= tl_queue_env_store_ms(visit->worker->env, now_ms))
        return false;
    tl_queue_use(visit->queue, visit->ticket.visitor, visit->ticket.place, &visit->state, now_ms);
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

/* The place of a pass, as the visit's ticket. */
static void take_place(struct tl_visit *visit, const struct tl_pass *pass)
{
    visit->ticket = (struct tl_ticket){.generation = pass->generation,
                                       .place = pass->place,
                                       .issued = (uint32_t)pass->issued,
                                       .front = tl_place_seq(pass->place)};
    memcpy(visit->ticket.visitor, pass->visitor, sizeof(visit->ticket.visitor));
}

static tl_step caught_up;

/* Judges the ticket, which was adopted: who has the pass has the place, on whatever device that is
 * now. */
static void judge_place(struct tl_visit *visit)
{
    visit->ticket.serial = tl_queue_serial(visit->queue, visit->ticket.place);
    tl_visit_judge(visit);
}

/* The line of this process does not know of the event yet after which the session was active. */
static enum verdict wait_for_event(struct tl_visit *visit, uint64_t event)
{
    /* Without the store nothing is learned by waiting, and the pass is the newest there is. */
    if (!tl_queue_store_up(visit->queue))
        return COUNTS;
    tl_wait_event(visit, event, caught_up);
    return HELD;
}

/* While the queue recovers: lets the session of a valid pass come back, if it is lost. VOID if that
 * session is known to have ended. */
static enum verdict bring_back(struct tl_visit *visit, const struct tl_pass *pass)
{
    struct tl_queue *queue = visit->queue;
    struct tl_ticket *ticket = &visit->ticket;
    bool known;
    if (tl_lost_ended(&queue->lost, pass->generation, pass->place))
        return VOID;
    if (!tl_queue_adopt(queue, ticket) && tl_queue_may_return(queue, ticket))
        (void)tl_queue_restore(queue, ticket, (uint64_t)pass->expires * 1000, pass->event);
    return tl_queue_look(queue, ticket->place, &known).status != TL_LINE_ENDED ? COUNTS : VOID;
}

/* What the line says of a valid pass, whose place the visit's ticket has. */
static enum verdict ask_line(struct tl_visit *visit, const struct tl_pass *pass)
{
    struct tl_queue *queue = visit->queue;
    if (tl_lost_recovering(&queue->lost))
        return bring_back(visit, pass);
    (void)tl_queue_adopt(queue, &visit->ticket);
    if (pass->generation == queue->line->generation)
        tl_lost_keep_pass(&queue->lost, queue->line, visit->ticket.place, pass->expires * 1000,
                          pass->event);
    judge_place(visit);
    if (is_active(visit) || visit->worth == TL_WORTH_AHEAD)
        return COUNTS;
    if (visit->worth == TL_WORTH_MAY_RETURN) {
        const bool waits = tl_visit_restore(visit, (uint64_t)pass->expires * 1000, pass->event);
        return waits ? HELD : COUNTS; /* nobody can say that it is over */
    }
    if (visit->worth == TL_WORTH_VOID || pass->event <= queue->line->event)
        return VOID;
    return wait_for_event(visit, pass->event);
}

/* Judges the pass that the request brings, and makes its place the visit's ticket. */
static enum verdict judge_pass(struct tl_visit *visit, struct tl_pass *pass)
{
    const struct tl_worker *worker = visit->worker;
    const char *bearer = tl_visit_bearer(visit);
    int64_t store_s = tl_queue_env_store_ms(worker->env, visit->now_ms) / 1000;
    const struct tl_jwt_keys *keys = worker->secrets.pass_keys;
    struct tl_error err = {0};
    if (bearer == NULL || strchr(bearer, '.') == NULL) /* a ticket, or an API key */
        return NO_PASS;
    if (!tl_visit_may_verify(visit, TL_LIMITER_PASSES, keys, bearer))
        return REFUSED;
    if (!tl_pass_verify(keys, worker->config->http.public_url, visit->name, bearer, strlen(bearer),
                        store_s, pass, &err)) {
        tl_visit_unverified(visit, TL_LIMITER_PASSES, keys, bearer);
        return NO_PASS;
    }
    take_place(visit, pass);
    return visit->queue == NULL ? COUNTS : ask_line(visit, pass);
}

/* Lets the visitor with this place in, unless another client came first to the session. Without a
 * line nobody knows who did. */
static bool open_gate(struct tl_visit *visit)
{
    if (visit->queue != NULL && !tl_misuse_session(visit))
        return false;
    return answer_in(visit, visit->ticket.visitor, NULL, NULL);
}

/* The outcome of the claim is known, or did not come in time. */
static bool claimed(struct tl_visit *visit)
{
    if (!tl_wait_applied(&visit->wait))
        return tl_refuse(&visit->refusal, TL_REFUSAL_STORE,
                         "Whether the session can be claimed is not known yet; try again");
    return visit->wait.result->outcome == TL_OUTCOME_DONE ? open_gate(visit) : answer_out(visit);
}

/* The queue is overbooked, and the visitor has come: holds the request until it is known whether
 * there is a counter. Without the store, or memory, that stays unknown, and the gate open. */
static bool hold_claim(struct tl_visit *visit)
{
    const struct tl_ticket *ticket = &visit->ticket;
    if (visit->queue == NULL || !tl_queue_must_claim(visit->queue, ticket->place) ||
        !tl_visit_may_send(visit))
        return false;
    struct tl_pending_command *pending = tl_outbox_command(visit->queue->outbox, TL_COMMAND_RENEW,
                                                           ticket->visitor, ticket->place, NULL);
    return pending != NULL && tl_wait_command(visit, pending, claimed);
}

static bool let_in(struct tl_visit *visit)
{
    return hold_claim(visit) || open_gate(visit);
}

/* The line has read the event, or the time is over. */
static bool caught_up(struct tl_visit *visit)
{
    (void)tl_queue_adopt(visit->queue, &visit->ticket);
    judge_place(visit);
    return is_active(visit) || tl_lost_recovering(&visit->queue->lost) ? let_in(visit)
                                                                       : answer_out(visit);
}

/* ---- checks ---- */

/* Everyone gets in. Sessions go on as before: the visitor of one is named, and seen. */
static bool pass_through(const struct tl_visit *visit, bool has_ticket)
{
    const char *visitor = has_ticket && is_active(visit) ? visit->ticket.visitor : NULL;
    return answer_in(visit, visitor, "X-Tellerline-Mode", "passthrough");
}

/* By network, by a header, or by an invite. False: not so. */
static bool gets_past(struct tl_visit *visit)
{
    const char *by = NULL;
    if (visit->has_address && tl_networks_contain(visit->worker->bypass, &visit->address))
        by = "network";
    else if (by_header(visit))
        by = "header";
    else if (by_invite(visit))
        by = "invite";
    if (by == NULL)
        return false;
    note(visit, by);
    return answer_in(visit, NULL, "X-Tellerline-Bypass", by);
}

/* Fail open for unknown visitors while Redis is down? */
static bool fails_open(const struct tl_visit *visit)
{
    if (visit->queue != NULL)
        return !tl_queue_store_up(visit->queue) &&
               visit->queue->settings.on_store_error == TL_STORE_ERROR_OPEN;
    /* Its settings were never loaded. */
    const struct tl_queue_settings *settings = configured(visit);
    return settings != NULL && settings->on_store_error == TL_STORE_ERROR_OPEN;
}

/* Neither the visitor's ticket nor a bypass opens the gate: a pass may. */
static bool judge_rest(struct tl_visit *visit, bool has_ticket)
{
    struct tl_pass pass;
    const struct tl_ticket brought = visit->ticket;
    const enum verdict verdict = judge_pass(visit, &pass);
    if (verdict == HELD || verdict == REFUSED)
        return verdict == HELD;
    if (verdict == COUNTS) {
        take_place(visit, &pass);
        return let_in(visit);
    }
    if (has_ticket && verdict == VOID) { /* the ticket may do what the pass does not */
        visit->ticket = brought;
        tl_visit_judge(visit);
    }
    if (has_ticket && tl_visit_may_return(visit))
        return tl_visit_restore(visit, 0, 0);
    if (verdict == NO_PASS && fails_open(visit))
        return answer_in(visit, NULL, NULL, NULL);
    /* It brought something that should have opened the gate. */
    if (tl_visit_bearer(visit) != NULL || tl_cookie_sent(visit))
        tl_misuse_failed(visit);
    return answer_out(visit);
}

/* GET /v1/queues/{q}/check: what gateways ask before they let a request through (nginx
 * auth_request, forward_auth). A visitor known to be active stays so until the deadline, also while
 * the store is down. A pass counts while its session is active, or while nobody can know: no line
 * is loaded, the queue recovers, or the store is down. For all others nothing new can be learned
 * then: on_store_error decides. */
bool tl_handle_check(struct tl_visit *visit)
{
    const struct tl_worker *worker = visit->worker;
    struct tl_queue *queue = tl_queues_find(&worker->queues, visit->name);
    visit->queue = queue != NULL && queue->line != NULL ? queue : NULL;
    const bool has_ticket = visit->queue != NULL && tl_visit_brought(visit, &visit->ticket);
    if (has_ticket)
        tl_visit_judge(visit);
    if (lets_everyone_in(visit))
        return pass_through(visit, has_ticket);
    if (queue == NULL &&
        worker->env->draining) /* queues are freed before the last answers are sent */
        return tl_refuse(&visit->refusal, TL_REFUSAL_STOPPING, "%s", "");
    if (tl_visit_no_queue(visit) && tl_queue_env_store_up(worker->env))
        return tl_refuse(&visit->refusal, TL_REFUSAL_NO_QUEUE, "%s", "");
    if (has_ticket && is_active(visit))
        return let_in(visit);
    return gets_past(visit) || judge_rest(visit, has_ticket);
}
