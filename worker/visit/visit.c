/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <sodium.h>

#include "common/auth/invite.h"
#include "common/auth/jwt.h"
#include "common/base/clock.h"
#include "common/base/net.h"
#include "common/base/text.h"
#include "common/config/queue_settings.h"
#include "common/config/texts.h"
#include "common/store/blocks.h"
#include "worker/http/router.h"
#include "worker/http/server.h"
#include "worker/report/worker_metrics.h"
#include "worker/visit/browser.h"
#include "worker/visit/visit.h"

enum {
    FORWARDED_LINES_MAX = 16,
    UNTRUSTED_LOG_MS = 60000,
    REPEATS_MAX = 120,   /* of a visitor in a minute */
    FORGERIES_MAX = 100, /* of a kind in a minute: 15 ms of verifying */
};

static void read_address(struct tl_visit *visit)
{
    const struct tl_networks *proxies = visit->worker->proxies;
    const char *lines[FORWARDED_LINES_MAX];
    visit->has_address = tl_request_peer(visit->request, &visit->address);
    if (visit->has_address && tl_networks_contain(proxies, &visit->address)) {
        size_t n =
            tl_request_headers(visit->request, "X-Forwarded-For", lines, FORWARDED_LINES_MAX);
        tl_forwarded_walk(proxies, lines, n, &visit->address);
    }
}

struct tl_visit *tl_visit_begin(struct tl_worker *worker, struct tl_request *request,
                                const char *name)
{
    struct tl_visit *visit = tl_request_visit(request); /* zeroed */
    visit->worker = worker;
    visit->request = request;
    visit->now_ms = tl_clock_ms();
    (void)tl_text_copy(visit->name, sizeof(visit->name), name);
    read_address(visit);
    return visit;
}

struct tl_visit tl_visit_of(struct tl_worker *worker, struct tl_queue *queue,
                            const struct tl_ticket *ticket, int64_t now_ms)
{
    struct tl_visit visit = {.worker = worker, .queue = queue, .ticket = *ticket, .now_ms = now_ms};
    memcpy(visit.name, queue->name, sizeof(queue->name));
    return visit;
}

/* ---- credentials ---- */

const char *tl_visit_bearer(const struct tl_visit *visit)
{
    const char *header = tl_request_header(visit->request, "Authorization");
    if (header == NULL || strncasecmp(header, "Bearer ", 7) != 0)
        return NULL;
    header += 7;
    return header + strspn(header, " ");
}

const char *tl_visit_caller(const struct tl_visit *visit)
{
    const char *bearer = tl_visit_bearer(visit);
    return bearer != NULL ? tl_callers_find(&visit->worker->secrets.callers, bearer) : NULL;
}

bool tl_visit_trusted(const struct tl_visit *visit)
{
    return tl_visit_caller(visit) != NULL;
}

static bool verify(const struct tl_visit *visit, const char *text, struct tl_ticket *ticket)
{
    const struct tl_worker *worker = visit->worker;
    return text != NULL &&
           tl_secrets_ticket(&worker->secrets, visit->name, text,
                             tl_queue_env_store_ms(worker->env, visit->now_ms), ticket);
}

bool tl_visit_brought(const struct tl_visit *visit, struct tl_ticket *ticket)
{
    const char *bearer = tl_visit_bearer(visit);
    const char *query = tl_request_query(visit->request, "ticket");
    if (verify(visit, bearer, ticket) || tl_cookie_ticket(visit, ticket) ||
        verify(visit, query, ticket))
        return true;
    /* The bearer may be a pass or an API key. */
    if (query != NULL || tl_cookie_sent(visit) ||
        (bearer != NULL && strchr(bearer, '.') == NULL && !tl_visit_trusted(visit)))
        tl_metrics_add(visit->worker->env->metrics, TL_WORKER_TICKETS_REFUSED, 1);
    return false;
}

/* ---- queues and places ---- */

bool tl_visit_no_queue(const struct tl_visit *visit)
{
    const struct tl_worker *worker = visit->worker;
    return tl_queues_find(&worker->queues, visit->name) == NULL && worker->env->listed;
}

bool tl_visit_queue(struct tl_visit *visit)
{
    const struct tl_worker *worker = visit->worker;
    struct tl_queue *queue = tl_queues_find(&worker->queues, visit->name);
    visit->queue = queue != NULL && queue->line != NULL ? queue : NULL;
    if (visit->queue != NULL)
        return true;
    if (worker->env->draining) /* the queues are freed before the last answers are sent */
        return tl_refuse(&visit->refusal, TL_REFUSAL_STOPPING, "%s", "");
    if (tl_visit_no_queue(visit))
        return tl_refuse(&visit->refusal, TL_REFUSAL_NO_QUEUE, "%s", "");
    return tl_refuse(&visit->refusal, TL_REFUSAL_LOADING, "%s", "");
}

void tl_visit_judge(struct tl_visit *visit)
{
    visit->worth = tl_queue_worth(visit->queue, &visit->ticket, visit->now_ms, &visit->state);
}

bool tl_visit_ticket(struct tl_visit *visit, tl_step *step)
{
    if (!tl_visit_queue(visit))
        return false;
    if (!tl_visit_brought(visit, &visit->ticket))
        return tl_refuse(&visit->refusal, TL_REFUSAL_BAD_TICKET,
                         "Send it as Authorization: Bearer, as cookie, or as ?ticket=");
    tl_visit_judge(visit);
    if (visit->worth == TL_WORTH_AHEAD || visit->worth == TL_WORTH_VOID ||
        visit->worth == TL_WORTH_MAY_RETURN)
        return tl_visit_restore(visit, 0, 0);
    return step(visit);
}

bool tl_visit_again(struct tl_visit *visit)
{
    visit->ticket = (struct tl_ticket){0};
    visit->gives_ticket = false;
    return visit->handler(visit);
}

/* The request is handled again: its ticket is of the present generation now, or is refused. */
static bool restored(struct tl_visit *visit)
{
    if (tl_wait_applied(&visit->wait))
        return tl_visit_again(visit);
    return tl_refuse(&visit->refusal, TL_REFUSAL_STORE, "Your place is being restored; try again");
}

bool tl_visit_restore(struct tl_visit *visit, uint64_t deadline_ms, uint64_t event)
{
    if (visit->worth == TL_WORTH_AHEAD)
        return tl_refuse(&visit->refusal, TL_REFUSAL_LOADING, "%s", "");
    if (visit->worth != TL_WORTH_MAY_RETURN)
        return tl_refuse(&visit->refusal, TL_REFUSAL_OLD_GENERATION, "%s", "");
    struct tl_pending_command *pending =
        tl_queue_restore(visit->queue, &visit->ticket, deadline_ms, event);
    if (pending == NULL)
        return tl_refuse(&visit->refusal, TL_REFUSAL_STORE,
                         "Your place cannot be restored yet; try again");
    return tl_wait_command(visit, pending, restored);
}

bool tl_visit_may_return(const struct tl_visit *visit)
{
    return visit->worth == TL_WORTH_MAY_RETURN ||
           (visit->worth == TL_WORTH_AHEAD && tl_queue_may_return(visit->queue, &visit->ticket));
}

bool tl_visit_is_held(const struct tl_visit *visit)
{
    return visit->state.status == TL_LINE_WAITING || visit->state.status == TL_LINE_ACTIVE;
}

bool tl_visit_newcomers(struct tl_visit *visit)
{
    static const enum tl_refusal_kind of_mode[TL_MODES] = {[TL_MODE_DRAINING] = TL_REFUSAL_DRAINING,
                                                           [TL_MODE_CLOSED] = TL_REFUSAL_CLOSED,
                                                           [TL_MODE_SOLD_OUT] =
                                                               TL_REFUSAL_SOLD_OUT};
    struct tl_refusal *refusal = &visit->refusal;
    const struct tl_queue_settings *settings = &visit->queue->settings;
    enum tl_phase phase = tl_queue_weather(visit->queue, visit->now_ms)->phase;
    if (tl_phase_joins(settings, phase))
        return true;
    if (settings->mode == TL_MODE_PASSTHROUGH)
        return tl_refuse(refusal, TL_REFUSAL_UNKNOWN_OUTCOME, "Everyone gets in now; try again");
    const char *language = tl_language_of(visit)->code;
    const char *text =
        tl_texts_pick(tl_queue_closed_texts(settings, settings->mode), language, NULL);
    if (settings->mode != TL_MODE_OPEN && settings->mode != TL_MODE_PAUSED)
        return tl_refuse(refusal, of_mode[settings->mode], "%s", text);
    if (phase == TL_PHASE_OVER)
        return tl_refuse(refusal, TL_REFUSAL_OVER, "%s", text);
    return tl_refuse(refusal, TL_REFUSAL_FULL, "As many wait as may; try again later");
}

/* ---- commands ---- */

bool tl_visit_may_send(struct tl_visit *visit)
{
    const struct tl_queue_env *env = visit->worker->env;
    struct tl_refusal *refusal = &visit->refusal;
    if (env->draining)
        return tl_refuse(refusal, TL_REFUSAL_STOPPING, "%s", "");
    if (!tl_queue_env_store_up(env) || (visit->queue != NULL && visit->queue->away))
        return tl_refuse(refusal, TL_REFUSAL_STORE, "The store cannot be reached; try again");
    if (env->full)
        return tl_refuse(refusal, TL_REFUSAL_BUSY,
                         "Too many commands wait to be applied; try again");
    return true;
}

bool tl_visit_may_repeat(const struct tl_visit *visit)
{
    const struct tl_address address =
        tl_visitor_stand_in(visit->queue->name, visit->ticket.visitor);
    return tl_limiter_allow(visit->worker->limiter, TL_LIMITER_REPEATS, &address, REPEATS_MAX,
                            visit->now_ms);
}

/* ---- joining once more ---- */

/* The lane in which a ticket joins. A pending one repeats its own join, so it keeps that lane if
 * the queue still has it. With any other, a new place is in the default lane: the old one used up
 * what had opened its lane. (A visitor who still holds a place keeps it, whatever lane a JOIN
 * names.) */
unsigned tl_rejoin_lane(const struct tl_queue *queue, tl_place place)
{
    const struct tl_queue_settings *settings = &queue->settings;
    unsigned lane = tl_place_lane(place);
    bool pending = tl_place_seq(place) == 0;
    return pending && lane < settings->n_lanes ? lane : settings->default_lane;
}

/* The join of a pending ticket once more: the one in progress, or a JOIN that the store takes only
 * if the place has not ended, and what opened the join was not spent before
 * (common/store/line/invites.lua). */
struct tl_pending_command *tl_rejoin(struct tl_queue *queue, const struct tl_ticket *ticket)
{
    char id[TL_BATCH_INVITE_MAX];
    /* An invite's own end is not known here: none is later than this. */
    uint64_t until_ms = (ticket->issued + (uint64_t)TL_INVITE_LIFETIME_S + 2 * UINT64_C(60)) * 1000;
    struct tl_pending_command *pending = tl_outbox_joining(queue->outbox, ticket->visitor);
    if (pending != NULL)
        return pending;
    if (ticket->invite == 0 || ticket->invite == TL_TICKET_TRUSTED)
        snprintf(id, sizeof(id), " %lu", (unsigned long)ticket->issued);
    else
        snprintf(id, sizeof(id), " %lu %016llx", (unsigned long)ticket->issued,
                 (unsigned long long)ticket->invite);
    return tl_outbox_join(queue->outbox, ticket->visitor, tl_rejoin_lane(queue, ticket->place), id,
                          until_ms);
}

bool tl_rejoin_gave_place(const struct tl_pending_result *result)
{
    return result->outcome != TL_OUTCOME_SPENT && result->outcome != TL_OUTCOME_FULL;
}

bool tl_rejoin_issued(const struct tl_pending_command *join, uint32_t *issued)
{
    if (join->invite == NULL || join->invite[0] != ' ')
        return false;
    *issued = (uint32_t)strtoul(join->invite + 1, NULL, 10);
    return true;
}

/* May a pending ticket still join? Not into another generation of the queue, except while that
 * recovers; and not uninvited where only the invited may join. */
bool tl_rejoin_may(struct tl_visit *visit)
{
    const struct tl_queue *queue = visit->queue;
    const struct tl_ticket *ticket = &visit->ticket;
    bool before = ticket->issued + TL_TICKET_CLOCK_S < queue->line->generation / 1000000;
    if (before && !tl_lost_recovering(&queue->lost))
        return tl_refuse(&visit->refusal, TL_REFUSAL_OLD_GENERATION, "%s", "");
    if (ticket->invite == 0 && queue->settings.join == TL_JOIN_INVITED)
        return tl_refuse(&visit->refusal, TL_REFUSAL_BY_INVITATION, "%s", "");
    return true;
}

/* ---- addresses and limits ---- */

struct tl_prefix tl_visit_network(const struct tl_visit *visit)
{
    return visit->has_address ? tl_prefix_of(&visit->address, TL_PREFIX_IPV4, TL_PREFIX_IPV6)
                              : (struct tl_prefix){0};
}

bool tl_visit_shares(const struct tl_visit *visit)
{
    struct tl_address other_end;
    return visit->has_address && tl_request_peer(visit->request, &other_end) &&
           memcmp(&other_end, &visit->address, sizeof(other_end)) == 0 &&
           tl_request_header(visit->request, "X-Forwarded-For") != NULL;
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

bool tl_visit_passes_blocks(struct tl_visit *visit)
{
    const struct tl_worker *worker = visit->worker;
    const struct tl_blocks *blocks = worker->queues.blocks;
    if (blocks == NULL || blocks->n == 0 || !visit->has_address ||
        tl_blocks_find(blocks, &visit->address, visit->name,
                       tl_queue_env_store_ms(worker->env, visit->now_ms)) == NULL)
        return true;
    tl_metrics_add(worker->env->metrics, TL_WORKER_BLOCKED, 1);
    return tl_refuse(&visit->refusal, TL_REFUSAL_BLOCKED, "%s", "");
}

bool tl_visit_within(const struct tl_visit *visit, enum tl_limiter_kind kind, uint64_t most)
{
    return !visit->has_address ||
           tl_limiter_allow(visit->worker->limiter, kind, &visit->address, most, visit->now_ms);
}

/* Who is counted for tokens of the request that are not genuine? False: nobody. */
static bool counted_as(const struct tl_visit *visit, struct tl_address *address)
{
    struct tl_ticket ticket;
    const bool brought = tl_visit_brought(visit, &ticket);
    *address = brought ? tl_visitor_stand_in(visit->name, ticket.visitor) : visit->address;
    return brought || visit->has_address;
}

/* Is a token counted, by these keys? */
static bool is_costly(const struct tl_jwt_keys *keys, const char *token)
{
    return keys == NULL || tl_jwt_is_costly(keys, token, strlen(token));
}

bool tl_visit_may_verify(struct tl_visit *visit, enum tl_limiter_kind kind,
                         const struct tl_jwt_keys *keys, const char *token)
{
    struct tl_address address;
    return !is_costly(keys, token) || !counted_as(visit, &address) ||
           tl_limiter_within(visit->worker->limiter, kind, &address, FORGERIES_MAX,
                             visit->now_ms) ||
           tl_refuse(&visit->refusal, TL_REFUSAL_FORGERIES,
                     "At most %d a minute; please wait a little", FORGERIES_MAX);
}

void tl_visit_unverified(const struct tl_visit *visit, enum tl_limiter_kind kind,
                         const struct tl_jwt_keys *keys, const char *token)
{
    struct tl_address address;
    if (is_costly(keys, token) && counted_as(visit, &address))
        (void)tl_limiter_allow(visit->worker->limiter, kind, &address, FORGERIES_MAX,
                               visit->now_ms);
}

/* Says now and then that visitors are counted as one because their proxy is not trusted. */
static void note_untrusted_proxy(const struct tl_visit *visit)
{
    const struct tl_prefix peer = tl_visit_network(visit);
    char text[TL_PREFIX_TEXT_MAX];
    unsigned suppressed;
    if (!tl_visit_shares(visit) ||
        !tl_log_allow(&visit->worker->untrusted_log, visit->now_ms, UNTRUSTED_LOG_MS, &suppressed))
        return;
    tl_prefix_format(&peer, text);
    tl_warn("joins from %s are refused by http.joins_per_minute, and have X-Forwarded-For: if that "
            "is a proxy, name it in http.trusted_proxies; else all its visitors count as one",
            text);
}

bool tl_visit_may_join(struct tl_visit *visit, bool paid)
{
    const struct tl_worker *worker = visit->worker;
    const struct tl_queue_env *env = worker->env;
    const struct tl_press press = {
        .pending = env->in_flight,
        .pending_max = worker->config->worker.max_pending,
        .lag_ms = tl_outbox_lag_ms(visit->queue->outbox, visit->now_ms),
        .lag_max_ms = worker->config->worker.max_lag_ms,
        .memory_percent = env->memory_percent,
    };
    const uint64_t most = worker->config->http.joins_per_minute, share = tl_press_share(&press);
    if (most == 0)
        return true;
    if (!tl_visit_within(visit, TL_LIMITER_SHARES, share)) {
        tl_metrics_add(env->metrics, TL_WORKER_JOINS_REFUSED, 1);
        return tl_refuse(&visit->refusal, TL_REFUSAL_BUSY,
                         "Too many join at the moment, and this address had its share; try again");
    }
    if (paid || tl_visit_within(visit, TL_LIMITER_JOINS, most))
        return true;
    note_untrusted_proxy(visit);
    return tl_refuse(&visit->refusal, TL_REFUSAL_TOO_MANY,
                     "At most %llu a minute; please wait a little", (unsigned long long)most);
}

bool tl_visit_may_stay(const struct tl_visit *visit)
{
    const struct tl_worker *worker = visit->worker;
    /* Connections are to be left for the requests of others. Those that wait for their client give
     * way. */
    const int64_t streams = tl_metrics_get(worker->env->metrics, TL_WORKER_EVENT_STREAMS);
    if ((uint64_t)streams + tl_server_counts(worker->server).busy + worker->connections_max / 100 <
            worker->connections_max &&
        (!visit->has_address || tl_clients_may(worker->clients, &visit->address)))
        return true;
    tl_metrics_add(worker->env->metrics, TL_WORKER_STREAMS_SHORT, 1);
    return false;
}
