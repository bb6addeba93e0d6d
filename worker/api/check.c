#include <stdio.h>
#include <string.h>

#include "common/auth/jwks.h"
#include "common/auth/pass.h"
#include "common/base/clock.h"
#include "worker/api/check.h"
#include "worker/api/visitor.h"

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

static void answer_in(struct tl_request *request, const char *visitor)
{
    struct tl_answer answer = {.status = 204};
    tl_answer_header(&answer, "X-Tellerline-Visitor", visitor);
    tl_request_answer(request, &answer);
}

/* 401, and where to wait: the waiting page, with the address that the visitor wanted, as the
 * gateway says it. That is only a proposal: the page checks where it may send people. One that is
 * too long is left out. */
static void answer_out(const struct tl_api *api, struct tl_request *request, const char *queue)
{
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
    n = snprintf(location, sizeof(location), "%s/q/%s%s%s", api->config->http.public_url, queue,
                 encoded[0] != '\0' ? "?return=" : "", encoded);
    struct tl_answer answer = {.status = 401,
                               .type = "application/problem+json",
                               .body = body,
                               .length = sizeof(body) - 1};
    bool fits = n > 0 && (size_t)n < sizeof(location);
    tl_answer_header(&answer, "X-Tellerline-Location", fits ? location : NULL);
    tl_answer_header(&answer, "WWW-Authenticate", "Bearer");
    tl_request_answer(request, &answer);
}

/* Does the ticket's visitor hold a session now? The request counts as a sign of life. */
static bool holds_session(const struct tl_api *api, struct tl_local_queue *queue,
                          const struct tl_request *request, struct tl_ticket *ticket)
{
    bool known;
    int64_t now_ms = tl_clock_ms();
    if (!tl_visitor_ticket(api, request, tl_local_queue_name(queue), ticket) ||
        tl_place_seq(ticket->place) == 0 || tl_visitor_outdated(queue, ticket))
        return false;
    struct tl_line_view state = tl_local_queue_look(queue, ticket->place, &known);
    if (state.status != TL_LINE_ACTIVE ||
        state.deadline_ms <= tl_queue_env_store_ms(api->env, now_ms))
        return false;
    tl_local_queue_touch(queue, ticket->visitor, ticket->place, &state, now_ms);
    return true;
}

/* A pass carries its own expiry: it is checked without the line. */
static bool shows_pass(const struct tl_api *api, const struct tl_request *request,
                       const char *queue, struct tl_pass *pass)
{
    const char *bearer = tl_visitor_bearer(request);
    struct tl_error err = {0};
    int64_t store_s = tl_queue_env_store_ms(api->env, tl_clock_ms()) / 1000;
    return bearer != NULL && tl_pass_verify(api->secrets.pass_keys, api->config->http.public_url,
                                            queue, bearer, strlen(bearer), store_s, pass, &err);
}

/* Fail open for unknown visitors while Redis is down? */
static bool fails_open(const struct tl_api *api, const struct tl_local_queue *queue,
                       const char *name)
{
    if (queue != NULL && tl_local_queue_loaded(queue))
        return !tl_queue_env_store_up(api->env) &&
               tl_local_queue_settings(queue)->on_store_error == TL_STORE_ERROR_OPEN;
    for (size_t i = 0; i < api->config->n_queues; i++) { /* its settings were never loaded */
        const struct tl_queue_config *configured = &api->config->queues[i];
        if (strcmp(configured->name, name) == 0)
            return configured->settings.on_store_error == TL_STORE_ERROR_OPEN;
    }
    return false;
}

/* A visitor known to be active stays so until the deadline, also while the store is down. For all
 * others nothing new can be learned then: on_store_error decides. */
bool tl_handle_check(void *context, struct tl_request *request, const char *name,
                     struct tl_refusal *refusal)
{
    const struct tl_api *api = context;
    struct tl_local_queue *queue = tl_queues_find(api->queues, name);
    struct tl_ticket ticket;
    struct tl_pass pass;
    if (queue == NULL && api->env->draining) /* queues are freed before the last answers are sent */
        return tl_refuse(refusal, TL_REFUSAL_STOPPING, "%s", "");
    if (queue == NULL && api->env->listed && tl_queue_env_store_up(api->env))
        return tl_refuse(refusal, TL_REFUSAL_NO_QUEUE, "%s", "");
    if (queue != NULL && tl_local_queue_loaded(queue) &&
        holds_session(api, queue, request, &ticket))
        answer_in(request, ticket.visitor);
    else if (shows_pass(api, request, name, &pass))
        answer_in(request, pass.visitor);
    else if (fails_open(api, queue, name))
        answer_in(request, NULL);
    else
        answer_out(api, request, name);
    return true;
}
