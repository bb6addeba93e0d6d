/* What gateways ask before they let a request through (nginx auth_request, forward_auth), and the
 * public keys of passes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/auth/jwks.h"
#include "common/auth/pass.h"
#include "common/base/clock.h"
#include "worker/api/routes.h"
#include "worker/http/problem.h"

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

/* The address the visitor wanted, as the gateway tells it; "" when it does not, or when it is too
 * long to come back to. It is only a proposal: the waiting page checks where it may send people. */
static void wanted_address(const struct tl_request *request, char address[ADDRESS_MAX])
{
    const char *whole = tl_request_header(request, "X-Original-URL");
    const char *scheme = tl_request_header(request, "X-Forwarded-Proto");
    const char *host = tl_request_header(request, "X-Forwarded-Host");
    const char *path = tl_request_header(request, "X-Forwarded-Uri");
    int n = 0;
    address[0] = '\0';
    if (whole != NULL)
        n = snprintf(address, ADDRESS_MAX, "%s", whole);
    else if (scheme != NULL && host != NULL && path != NULL)
        n = snprintf(address, ADDRESS_MAX, "%s://%s%s", scheme, host, path);
    if (n < 0 || n >= ADDRESS_MAX)
        address[0] = '\0';
}

static void answer_in(struct tl_request *request, const char *visitor)
{
    struct tl_answer answer = {.status = 204};
    if (visitor != NULL)
        answer.headers[answer.n_headers++] = (struct tl_header){"X-Tellerline-Visitor", visitor};
    tl_request_answer(request, &answer);
}

/* 401, and where to wait. */
static void answer_out(const struct tl_edge *edge, struct tl_request *request, const char *queue)
{
    static const char body[] =
        "{\"type\":\"/problems/not-admitted\",\"title\":\"Not admitted\",\"status\":401}\n";
    char address[ADDRESS_MAX];
    char encoded[3 * ADDRESS_MAX];
    char location[LOCATION_MAX];
    wanted_address(request, address);
    percent_encode(address, encoded, sizeof(encoded));
    int n = snprintf(location, sizeof(location), "%s/q/%s%s%s", edge->config->http.public_url,
                     queue, encoded[0] != '\0' ? "?return=" : "", encoded);
    struct tl_answer answer = {.status = 401,
                               .type = "application/problem+json",
                               .body = body,
                               .length = sizeof(body) - 1};
    if (n > 0 && (size_t)n < sizeof(location))
        answer.headers[answer.n_headers++] = (struct tl_header){"X-Tellerline-Location", location};
    answer.headers[answer.n_headers++] = (struct tl_header){"WWW-Authenticate", "Bearer"};
    tl_request_answer(request, &answer);
}

/* on_store_error of a queue whose line was never loaded: as the configuration file says. */
static bool configured_open(const struct tl_edge *edge, const char *queue)
{
    for (size_t i = 0; i < edge->config->n_queues; i++)
        if (strcmp(edge->config->queues[i].name, queue) == 0)
            return edge->config->queues[i].settings.on_store_error == TL_STORE_ERROR_OPEN;
    return false;
}

/* Does the ticket's visitor hold a session now? Also a sign of life. */
static bool holds_session(struct tl_room *room, const struct tl_request *request,
                          struct tl_ticket *ticket)
{
    bool known;
    if (!tl_visitor_ticket(room, request, ticket) || tl_place_seq(ticket->place) == 0 ||
        ticket->generation != tl_line_generation(room->line))
        return false;
    struct tl_line_view state = tl_room_look(room, ticket->place, &known);
    if (state.status != TL_LINE_ACTIVE || state.deadline_ms <= tl_edge_now_ms(room->edge))
        return false;
    tl_room_greet(room, ticket->visitor, ticket->place, &state, tl_clock_ms());
    return true;
}

/* A pass says by itself until when it is good: no line is needed, and none is asked. */
static bool shows_pass(const struct tl_edge *edge, const struct tl_request *request,
                       const char *queue, struct tl_pass *pass)
{
    const char *bearer = tl_visitor_bearer(request);
    struct tl_error err = {0};
    return bearer != NULL &&
           tl_pass_verify(edge->secrets.pass_keys, edge->config->http.public_url, queue, bearer,
                          strlen(bearer), tl_edge_now_ms(edge) / 1000, pass, &err);
}

/* Is somebody let through of whom nothing is known, because nothing new can be learnt now? */
static bool lets_strangers_in(const struct tl_edge *edge, const struct tl_room *room,
                              const char *queue)
{
    if (room == NULL || room->line == NULL)
        return configured_open(edge, queue);
    return !tl_edge_store_up(edge) && room->settings.on_store_error == TL_STORE_ERROR_OPEN;
}

/* Whoever is known to be active stays so until the deadline, also while the store is away. About
 * everybody else nothing new can be learnt then: on_store_error decides. */
void tl_handle_check(struct tl_edge *edge, struct tl_request *request, const char *queue)
{
    struct tl_room *room = tl_edge_room(edge, queue);
    struct tl_ticket ticket;
    struct tl_pass pass;
    if (room == NULL && edge->draining) /* the rooms go before the last answers do */
        tl_problem_answer(request, TL_PROBLEM_STOPPING, "%s", "");
    else if (room == NULL && edge->listed && tl_edge_store_up(edge))
        tl_problem_answer(request, TL_PROBLEM_NO_QUEUE, "%s", "");
    else if (room != NULL && room->line != NULL && holds_session(room, request, &ticket))
        answer_in(request, ticket.visitor);
    else if (shows_pass(edge, request, queue, &pass))
        answer_in(request, pass.visitor);
    else if (lets_strangers_in(edge, room, queue))
        answer_in(request, NULL);
    else
        answer_out(edge, request, queue);
}

void tl_handle_jwks(struct tl_edge *edge, struct tl_request *request, const char *queue)
{
    (void)queue;
    struct tl_error err = {0};
    char *text = tl_jwks_write(edge->secrets.pass_keys, &err);
    if (text == NULL) {
        tl_problem_answer(request, TL_PROBLEM_BUSY, "%s", err.text);
        return;
    }
    tl_request_answer(request, &(struct tl_answer){.status = 200,
                                                   .type = "application/jwk-set+json",
                                                   .cache = "public, max-age=300",
                                                   .body = text,
                                                   .length = strlen(text)});
    free(text);
}
