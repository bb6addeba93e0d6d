/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/log.h"
#include "common/base/net.h"
#include "common/store/signs.h"
#include "worker/api/handlers.h"
#include "worker/http/sharing.h"
#include "worker/report/queue_counts.h"
#include "worker/report/worker_metrics.h"

enum {
    LOG_EVERY_MS = 10000,
    MANY = 60, /* of one network in a minute, in one process: above it, one counts as misuse */
    ADVICE_MAX = 192,
    REPORTED = 5, /* of one network in one report: fewer are no part of a sign */
};

/* Requests that come too often; and a session that is not used by one person. */
enum sign { JOINS, FAILURES, SHARED, FAST, SIGNS };

static const struct {
    enum tl_worker_metric metric;
    enum tl_queue_count count;
    const char *what;
} signs[SIGNS] = {
    [JOINS] = {TL_WORKER_JOINS_MANY, TL_QUEUE_JOINS_MANY, "joins"},
    [FAILURES] = {TL_WORKER_FAILURES_MANY, TL_QUEUE_FAILURES_MANY,
                  "tickets and passes that open nothing"},
    [SHARED] = {TL_WORKER_SESSIONS_SHARED, TL_QUEUE_SESSIONS_SHARED,
                "is used by several clients in turn"},
    [FAST] = {TL_WORKER_SESSIONS_FAST, TL_QUEUE_SESSIONS_FAST,
              "is checked faster than a person browses"},
};

struct tl_misuse {
    struct tl_hitters hitters[FAILURES + 1]; /* of all queues, in this minute */
    struct tl_log_limit logs[SIGNS];
    struct tl_tallies tallies; /* since the last report */
    int64_t reported_ms;
};

struct tl_misuse *tl_misuse_new(void)
{
    return calloc(1, sizeof(struct tl_misuse));
}

void tl_misuse_free(struct tl_misuse **misuse)
{
    free(*misuse);
    *misuse = NULL;
}

void tl_misuse_count(const struct tl_worker *worker, const char *queue, enum tl_queue_count kind)
{
    tl_queue_counts_add(worker->env->queue_counts, queue, tl_queue_counts_stream(queue), kind, 1);
}

/* What an operator can do about this address. One that many visitors share is not to be blocked:
 * that of a proxy. */
static void write_advice(const struct tl_visit *visit, const char *prefix, char text[ADVICE_MAX])
{
    if (tl_networks_contain(visit->worker->proxies, &visit->address))
        snprintf(text, ADVICE_MAX,
                 "it is one of http.trusted_proxies, which has to send X-Forwarded-For, or all its "
                 "visitors count as one");
    else if (tl_visit_shares(visit))
        snprintf(
            text, ADVICE_MAX,
            "if it is a proxy, name it in http.trusted_proxies; else `tellerline block add %s` "
            "refuses it",
            prefix);
    else
        snprintf(text, ADVICE_MAX, "`tellerline block add %s` refuses it", prefix);
}

/* Counts this sign. Is it to be logged? Then writes the visitor's network. */
static bool count(const struct tl_visit *visit, enum sign sign, char network[TL_PREFIX_TEXT_MAX])
{
    const struct tl_worker *worker = visit->worker;
    const struct tl_prefix prefix = tl_visit_network(visit);
    unsigned suppressed;
    tl_metrics_add(worker->env->metrics, signs[sign].metric, 1);
    tl_misuse_count(worker, visit->name, signs[sign].count);
    if ((sign == SHARED && visit->queue->settings.session_sharing == TL_SHARING_COUNT) ||
        !tl_log_allow(&worker->misuse->logs[sign], visit->now_ms, LOG_EVERY_MS, &suppressed))
        return false;
    tl_prefix_format(&prefix, network);
    return true;
}

/* tally: the queue's; NULL: it has none. */
static void note(const struct tl_visit *visit, struct tl_tally *tally, enum sign sign)
{
    char network[TL_PREFIX_TEXT_MAX], advice[ADVICE_MAX];
    struct tl_hitters *hitters = &visit->worker->misuse->hitters[sign];
    const struct tl_prefix prefix = tl_visit_network(visit);
    if (!visit->has_address)
        return;
    const uint32_t n =
        tl_hitters_add(hitters, &prefix, tl_queue_counts_stream(visit->name), visit->now_ms);
    if (tally != NULL)
        (void)tl_hitters_add(sign == JOINS ? &tally->joins : &tally->failures, &prefix, 0,
                             visit->now_ms);
    if (n <= MANY || !count(visit, sign, network))
        return;
    write_advice(visit, network, advice);
    tl_log(TL_LOG_WARN, &(struct tl_log_fields){.queue = visit->name},
           "%s sent %u %s to this process within a minute, of %llu in all; %s", network, n,
           signs[sign].what, (unsigned long long)hitters->total, advice);
}

static struct tl_tally *tally_of(const struct tl_worker *worker, const char *queue)
{
    return tl_tallies_of(&worker->misuse->tallies, queue, tl_queue_counts_stream(queue));
}

void tl_misuse_join(const struct tl_visit *visit)
{
    note(visit, tally_of(visit->worker, visit->name), JOINS);
}

void tl_misuse_failed(const struct tl_visit *visit)
{
    struct tl_tally *tally = tally_of(visit->worker, visit->name);
    tl_metrics_add(visit->worker->env->metrics, TL_WORKER_CHECKS_FAILED, 1);
    tl_misuse_count(visit->worker, visit->name, TL_QUEUE_CHECKS_FAILED);
    if (tally != NULL)
        tally->failed++;
    note(visit, tally, FAILURES);
}

/* ---- sessions ---- */

static void note_session(const struct tl_visit *visit, enum sign sign)
{
    struct tl_tally *tally = tally_of(visit->worker, visit->name);
    char network[TL_PREFIX_TEXT_MAX];
    if (tally != NULL)
        ++*(sign == SHARED ? &tally->shared : &tally->fast);
    if (count(visit, sign, network))
        tl_log(TL_LOG_WARN, &(struct tl_log_fields){.queue = visit->name},
               "the session of visitor %s %s, now %s; `tellerline visitor remove` ends it",
               visit->ticket.visitor, signs[sign].what, network);
}

bool tl_misuse_session(struct tl_visit *visit)
{
    const struct tl_worker *worker = visit->worker;
    const struct tl_ticket *ticket = &visit->ticket;
    if (!visit->has_address)
        return true;
    const struct tl_sharing_sight sight = tl_sharing_see(
        worker->sharing, visit->name, ticket->generation, ticket->place, &visit->address,
        tl_request_header(visit->request, "User-Agent"), visit->now_ms);
    if (sight.noticed)
        note_session(visit, SHARED);
    if (sight.fast)
        note_session(visit, FAST);
    if (!sight.shared || !sight.newer ||
        visit->queue->settings.session_sharing != TL_SHARING_REFUSE)
        return true;
    tl_metrics_add(worker->env->metrics, TL_WORKER_SHARED_REFUSED, 1);
    return tl_refuse(&visit->refusal, TL_REFUSAL_SHARED,
                     "Another client, which came first, uses this session too");
}

/* ---- reports ---- */

static void name_networks(const struct tl_hitters *hitters, struct tl_sign_networks *networks)
{
    for (size_t i = 0; i < hitters->n; i++) {
        const struct tl_hitter *hitter = &hitters->list[i];
        if (hitter->count - hitter->error >= REPORTED)
            tl_sign_networks_add(networks, &hitter->prefix, hitter->count - hitter->error);
    }
}

void tl_misuse_tick(const struct tl_worker *worker, int64_t now_ms)
{
    struct tl_misuse *misuse = worker->misuse;
    if (now_ms - misuse->reported_ms < TL_SIGNS_PERIOD_MS)
        return;
    misuse->reported_ms = now_ms;
    for (size_t i = 0; i < misuse->tallies.n; i++) {
        const struct tl_tally *tally = &misuse->tallies.list[i];
        struct tl_signs seen = {
            .failed = tally->failed, .shared = tally->shared, .fast = tally->fast};
        char text[TL_SIGNS_TEXT_MAX];
        name_networks(&tally->joins, &seen.joins);
        name_networks(&tally->failures, &seen.failures);
        if (seen.failed + seen.shared + seen.fast + seen.joins.n == 0)
            continue;
        tl_signs_format(&seen, text);
        const struct tl_queue *queue = tl_queues_find(&worker->queues, tally->queue);
        if (queue != NULL && !queue->troubled && tl_queue_env_takes_notes(worker->env))
            (void)tl_ingest_note(worker->env->ingest, TL_NOTE_SIGNS, tally->queue, text);
    }
    misuse->tallies.n = 0;
}
