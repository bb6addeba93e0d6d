/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <strings.h>

#include <sodium.h>

#include "common/auth/jwt.h"
#include "common/base/clock.h"
#include "common/base/net.h"
#include "worker/api/cookie.h"
#include "worker/api/restore.h"
#include "worker/api/visitor.h"
#include "worker/http/forwarded.h"
#include "worker/queue/press.h"
#include "worker/queue/tickets.h"
#include "worker/report/worker_metrics.h"

enum {
    FORWARDED_LINES_MAX = 16,
    UNTRUSTED_LOG_MS = 60000,
    REPEATS_MAX = 120,   /* of a visitor in a minute */
    FORGERIES_MAX = 100, /* of a kind in a minute: 15 ms of verifying */
};

/* ---- credentials ---- */

const char *tl_visitor_bearer(const struct tl_request *request)
{
    const char *header = tl_request_header(request, "Authorization");
    if (header == NULL || strncasecmp(header, "Bearer ", 7) != 0)
        return NULL;
    header += 7;
    return header + strspn(header, " ");
}

const char *tl_visitor_caller(const struct tl_api *api, const struct tl_request *request)
{
    const char *bearer = tl_visitor_bearer(request);
    return bearer != NULL ? tl_api_keys_find(api->secrets.api_keys, bearer) : NULL;
}

bool tl_visitor_trusted(const struct tl_api *api, const struct tl_request *request)
{
    return tl_visitor_caller(api, request) != NULL;
}

static bool verify(const struct tl_api *api, const char *queue, const char *text,
                   struct tl_ticket *ticket)
{
    return text != NULL &&
           tl_secrets_ticket(&api->secrets, queue, text,
                             tl_queue_env_store_ms(api->env, tl_clock_ms()), ticket);
}

bool tl_visitor_ticket(const struct tl_api *api, const struct tl_request *request,
                       const char *queue, struct tl_ticket *ticket)
{
    const char *bearer = tl_visitor_bearer(request);
    const char *query = tl_request_query(request, "ticket");
    bool cookies = false;
    if (verify(api, queue, bearer, ticket) ||
        tl_cookie_ticket(api, request, queue, ticket, &cookies) ||
        verify(api, queue, query, ticket))
        return true;
    /* The bearer may be a pass or an API key. */
    if (cookies || query != NULL ||
        (bearer != NULL && strchr(bearer, '.') == NULL && !tl_visitor_trusted(api, request)))
        tl_metrics_add(api->env->metrics, TL_WORKER_TICKETS_REFUSED, 1);
    return false;
}

/* ---- queues ---- */

bool tl_visitor_no_queue(const struct tl_api *api, const char *name)
{
    return tl_queues_find(api->queues, name) == NULL && api->env->listed &&
           !tl_queues_troubled(api->queues, name);
}

struct tl_queue *tl_visitor_queue(const struct tl_api *api, const char *name,
                                  struct tl_refusal *refusal)
{
    struct tl_queue *queue = tl_queues_find(api->queues, name);
    if (queue != NULL && queue->line != NULL)
        return queue;
    if (api->env->draining) /* the queues are freed before the last answers are sent */
        tl_refuse(refusal, TL_REFUSAL_STOPPING, "%s", "");
    else if (tl_visitor_no_queue(api, name))
        tl_refuse(refusal, TL_REFUSAL_NO_QUEUE, "%s", "");
    else
        tl_refuse(refusal, TL_REFUSAL_LOADING, "%s", "");
    return NULL;
}

struct tl_queue *tl_visitor_of(const struct tl_api *api, struct tl_request *request,
                               const char *name, struct tl_ticket *ticket,
                               struct tl_refusal *refusal)
{
    struct tl_queue *queue = tl_visitor_queue(api, name, refusal);
    if (queue == NULL)
        return NULL;
    if (!tl_visitor_ticket(api, request, name, ticket)) {
        tl_refuse(refusal, TL_REFUSAL_BAD_TICKET,
                  "Send it as Authorization: Bearer, as cookie, or as ?ticket=");
        return NULL;
    }
    (void)tl_queue_adopt(queue, ticket);
    if (tl_queue_outdated(queue, ticket) || tl_queue_may_return(queue, ticket)) {
        (void)tl_restore_request(api, queue, request, ticket, refusal);
        return NULL;
    }
    return queue;
}

/* ---- limits ---- */

bool tl_visitor_may_send(const struct tl_api *api, struct tl_refusal *refusal)
{
    const struct tl_queue_env *env = api->env;
    if (env->draining)
        return tl_refuse(refusal, TL_REFUSAL_STOPPING, "%s", "");
    if (!tl_queue_env_store_up(env))
        return tl_refuse(refusal, TL_REFUSAL_STORE, "The store cannot be reached; try again");
    if (env->full)
        return tl_refuse(refusal, TL_REFUSAL_BUSY,
                         "Too many commands wait to be applied; try again");
    return true;
}

bool tl_visitor_address(const struct tl_api *api, const struct tl_request *request,
                        struct tl_address *address)
{
    const char *lines[FORWARDED_LINES_MAX];
    if (!tl_request_peer(request, address))
        return false;
    if (tl_networks_contain(api->proxies, address)) {
        size_t n = tl_request_headers(request, "X-Forwarded-For", lines, FORWARDED_LINES_MAX);
        tl_forwarded_walk(api->proxies, lines, n, address);
    }
    return true;
}

bool tl_visitor_shares(const struct tl_request *request, const struct tl_address *address)
{
    struct tl_address other_end;
    return tl_request_peer(request, &other_end) &&
           memcmp(&other_end, address, sizeof(other_end)) == 0 &&
           tl_request_header(request, "X-Forwarded-For") != NULL;
}

/* Says now and then that visitors are counted as one because their proxy is not trusted. */
static void note_untrusted_proxy(struct tl_api *api, const struct tl_request *request,
                                 const struct tl_address *address, int64_t now_ms)
{
    const struct tl_prefix peer = tl_prefix_of(address, TL_PREFIX_IPV4, TL_PREFIX_IPV6);
    char text[TL_PREFIX_TEXT_MAX];
    unsigned suppressed;
    if (!tl_visitor_shares(request, address) ||
        !tl_log_allow(&api->untrusted_log, now_ms, UNTRUSTED_LOG_MS, &suppressed))
        return;
    tl_prefix_format(&peer, text);
    tl_warn("joins from %s are refused by http.joins_per_minute, and have X-Forwarded-For: if that "
            "is a proxy, name it in http.trusted_proxies; else all its visitors count as one",
            text);
}

bool tl_visitor_may_join(struct tl_api *api, struct tl_queue *queue,
                         const struct tl_request *request, bool paid, int64_t now_ms,
                         struct tl_refusal *refusal)
{
    const struct tl_queue_env *env = api->env;
    const struct tl_press press = {
        .pending = env->in_flight,
        .pending_max = api->config->worker.max_pending,
        .lag_ms = tl_outbox_lag_ms(queue->outbox, now_ms),
        .lag_max_ms = api->config->worker.max_lag_ms,
        .memory_percent = env->memory_percent,
    };
    const uint64_t most = api->config->http.joins_per_minute, share = tl_press_share(&press);
    struct tl_address address;
    if (most == 0 || !tl_visitor_address(api, request, &address))
        return true;
    if (!tl_limiter_allow(api->limiter, TL_LIMITER_SHARES, &address, share, now_ms)) {
        tl_metrics_add(env->metrics, TL_WORKER_JOINS_REFUSED, 1);
        return tl_refuse(refusal, TL_REFUSAL_BUSY,
                         "Too many join at the moment, and this address had its share; try again");
    }
    if (paid || tl_limiter_allow(api->limiter, TL_LIMITER_JOINS, &address, most, now_ms))
        return true;
    note_untrusted_proxy(api, request, &address, now_ms);
    return tl_refuse(refusal, TL_REFUSAL_TOO_MANY, "At most %llu a minute; please wait a little",
                     (unsigned long long)most);
}

bool tl_visitor_may_stay(const struct tl_api *api, const struct tl_request *request,
                         struct tl_address *address, const struct tl_address **client)
{
    *client = tl_visitor_address(api, request, address) ? address : NULL;
    if (!api->stream_fits(api->process))
        return false;
    if (*client == NULL || tl_clients_may(api->clients, *client))
        return true;
    tl_metrics_add(api->env->metrics, TL_WORKER_STREAMS_SHORT, 1);
    return false;
}

struct tl_address tl_visitor_stand_in(const char *queue, const char *name)
{
    struct tl_address address;
    crypto_generichash_state hash;
    (void)crypto_generichash_init(&hash, NULL, 0, sizeof(address.bytes));
    (void)crypto_generichash_update(&hash, (const unsigned char *)name, strlen(name) + 1);
    (void)crypto_generichash_update(&hash, (const unsigned char *)queue, strlen(queue));
    (void)crypto_generichash_final(&hash, address.bytes, sizeof(address.bytes));
    address.bytes[0] |= 0x80; /* IPv6 */
    return address;
}

bool tl_visitor_may_repeat(const struct tl_api *api, const struct tl_queue *queue,
                           const struct tl_ticket *ticket)
{
    const struct tl_address address = tl_visitor_stand_in(queue->name, ticket->visitor);
    return tl_limiter_allow(api->limiter, TL_LIMITER_REPEATS, &address, REPEATS_MAX, tl_clock_ms());
}

/* Who is counted for tokens of the request that are not genuine? False: nobody. */
static bool counted_as(const struct tl_api *api, const struct tl_visitor_tokens *tokens,
                       struct tl_address *address)
{
    struct tl_ticket ticket;
    if (!tl_visitor_ticket(api, tokens->request, tokens->queue, &ticket))
        return tl_visitor_address(api, tokens->request, address);
    *address = tl_visitor_stand_in(tokens->queue, ticket.visitor);
    return true;
}

bool tl_visitor_may_fail(const struct tl_api *api, const struct tl_visitor_tokens *tokens,
                         struct tl_refusal *refusal)
{
    struct tl_address address;
    return !counted_as(api, tokens, &address) ||
           tl_limiter_within(api->limiter, tokens->kind, &address, FORGERIES_MAX, tokens->now_ms) ||
           tl_refuse(refusal, TL_REFUSAL_FORGERIES, "At most %d a minute; please wait a little",
                     FORGERIES_MAX);
}

void tl_visitor_failed(const struct tl_api *api, const struct tl_visitor_tokens *tokens)
{
    struct tl_address address;
    if (counted_as(api, tokens, &address))
        (void)tl_limiter_allow(api->limiter, tokens->kind, &address, FORGERIES_MAX, tokens->now_ms);
}

bool tl_visitor_may_verify(const struct tl_api *api, const struct tl_visitor_tokens *tokens,
                           const struct tl_jwt_keys *keys, const char *text,
                           struct tl_refusal *refusal)
{
    return !tl_jwt_is_costly(keys, text, strlen(text)) || tl_visitor_may_fail(api, tokens, refusal);
}

void tl_visitor_refused(const struct tl_api *api, const struct tl_visitor_tokens *tokens,
                        const struct tl_jwt_keys *keys, const char *text)
{
    if (tl_jwt_is_costly(keys, text, strlen(text)))
        tl_visitor_failed(api, tokens);
}
