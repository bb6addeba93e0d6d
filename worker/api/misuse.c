/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/net.h"
#include "common/store/signs.h"
#include "worker/api/misuse.h"
#include "worker/api/visitor.h"
#include "worker/http/sharing.h"
#include "worker/report/queue_counts.h"
#include "worker/report/tallies.h"
#include "worker/report/worker_metrics.h"

enum {
    LOG_EVERY_MS = 10000,
    MANY_JOINS = 60,    /* of one network in a minute, in one process */
    MANY_FAILURES = 60, /* likewise */
    ADVICE_MAX = 192,
    REPORTED = 5, /* of one network in one report: fewer are no part of a sign */
};

struct tl_misuse {
    struct tl_hitters joins, failures;
    struct tl_log_limit joins_log, failures_log, shared_log, fast_log;
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

void tl_misuse_count(const struct tl_api *api, const char *queue, enum tl_queue_count kind)
{
    tl_queue_counts_add(api->env->queue_counts, queue, tl_queue_counts_stream(queue), kind);
}

/* What is counted of requests that come too often. */
struct kind {
    struct tl_hitters *hitters; /* of all queues, in this minute */
    struct tl_hitters *tally;   /* of the queue, since the last report; NULL: it has none */
    uint32_t many;              /* above it, one counts as misuse and is logged */
    enum tl_worker_metric metric;
    enum tl_queue_count count;
    struct tl_log_limit *limit;
    const char *what;
};

/* What an operator can do about this address. One that many visitors share is not to be blocked:
 * that of a proxy. */
static void write_advice(const struct tl_api *api, const struct tl_request *request,
                         const struct tl_address *address, const char *prefix, char *text,
                         size_t size)
{
    if (tl_networks_contain(api->proxies, address))
        snprintf(text, size,
                 "it is one of http.trusted_proxies, which has to send X-Forwarded-For, or all its "
                 "visitors count as one");
    else if (tl_visitor_shares(request, address))
        snprintf(text, size,
                 "if it is a proxy, name it in http.trusted_proxies; else `tellerline block %s` "
                 "refuses it",
                 prefix);
    else
        snprintf(text, size, "`tellerline block %s` refuses it", prefix);
}

static void note(const struct tl_api *api, const struct tl_request *request, const char *queue,
                 uint32_t stream, const struct kind *kind)
{
    char text[TL_PREFIX_TEXT_MAX];
    char advice[ADVICE_MAX];
    unsigned suppressed;
    struct tl_address address;
    if (!tl_visitor_address(api, request, &address))
        return;
    int64_t now_ms = tl_clock_ms();
    const struct tl_prefix prefix = tl_prefix_of(&address, TL_PREFIX_IPV4, TL_PREFIX_IPV6);
    uint32_t count = tl_hitters_add(kind->hitters, &prefix, stream, now_ms);
    if (kind->tally != NULL)
        (void)tl_hitters_add(kind->tally, &prefix, 0, now_ms);
    if (count <= kind->many)
        return;
    tl_metrics_add(api->env->metrics, kind->metric, 1);
    tl_queue_counts_add(api->env->queue_counts, queue, stream, kind->count);
    if (!tl_log_allow(kind->limit, now_ms, LOG_EVERY_MS, &suppressed))
        return;
    tl_prefix_format(&prefix, text);
    write_advice(api, request, &address, text, advice, sizeof(advice));
    tl_log(TL_LOG_WARN, &(struct tl_log_fields){.queue = queue},
           "%s sent %u %s to this process within a minute, of %llu in all; %s", text, count,
           kind->what, (unsigned long long)kind->hitters->total, advice);
}

void tl_misuse_join(const struct tl_api *api, const struct tl_request *request, const char *queue)
{
    struct tl_misuse *misuse = api->misuse;
    uint32_t stream = tl_queue_counts_stream(queue);
    struct tl_tally *tally = tl_tallies_of(&misuse->tallies, queue, stream);
    const struct kind joins = {.hitters = &misuse->joins,
                               .tally = tally != NULL ? &tally->joins : NULL,
                               .many = MANY_JOINS,
                               .metric = TL_WORKER_JOINS_MANY,
                               .count = TL_QUEUE_JOINS_MANY,
                               .limit = &misuse->joins_log,
                               .what = "joins"};
    note(api, request, queue, stream, &joins);
}

void tl_misuse_failed(const struct tl_api *api, const struct tl_request *request, const char *queue)
{
    struct tl_misuse *misuse = api->misuse;
    uint32_t stream = tl_queue_counts_stream(queue);
    struct tl_tally *tally = tl_tallies_of(&misuse->tallies, queue, stream);
    const struct kind failures = {.hitters = &misuse->failures,
                                  .tally = tally != NULL ? &tally->failures : NULL,
                                  .many = MANY_FAILURES,
                                  .metric = TL_WORKER_FAILURES_MANY,
                                  .count = TL_QUEUE_FAILURES_MANY,
                                  .limit = &misuse->failures_log,
                                  .what = "tickets and passes that open nothing"};
    tl_metrics_add(api->env->metrics, TL_WORKER_CHECKS_FAILED, 1);
    tl_queue_counts_add(api->env->queue_counts, queue, stream, TL_QUEUE_CHECKS_FAILED);
    if (tally != NULL)
        tally->failed++;
    note(api, request, queue, stream, &failures);
}

/* ---- sessions ---- */

static void log_session(const char *queue, const char *visitor, const struct tl_address *address,
                        struct tl_log_limit *limit, int64_t now_ms, const char *what)
{
    char text[TL_PREFIX_TEXT_MAX];
    unsigned suppressed;
    if (!tl_log_allow(limit, now_ms, LOG_EVERY_MS, &suppressed))
        return;
    const struct tl_prefix prefix = tl_prefix_of(address, TL_PREFIX_IPV4, TL_PREFIX_IPV6);
    tl_prefix_format(&prefix, text);
    tl_log(TL_LOG_WARN, &(struct tl_log_fields){.queue = queue},
           "the session of visitor %s %s, now %s; `tellerline visitor remove` ends it", visitor,
           what, text);
}

static void count_session(const struct tl_api *api, const char *queue,
                          const struct tl_sharing_sight *sight)
{
    uint32_t stream = tl_queue_counts_stream(queue);
    struct tl_tally *tally = tl_tallies_of(&api->misuse->tallies, queue, stream);
    if (sight->noticed) {
        tl_metrics_add(api->env->metrics, TL_WORKER_SESSIONS_SHARED, 1);
        tl_queue_counts_add(api->env->queue_counts, queue, stream, TL_QUEUE_SESSIONS_SHARED);
    }
    if (sight->fast) {
        tl_metrics_add(api->env->metrics, TL_WORKER_SESSIONS_FAST, 1);
        tl_queue_counts_add(api->env->queue_counts, queue, stream, TL_QUEUE_SESSIONS_FAST);
    }
    if (tally != NULL) {
        tally->shared += sight->noticed;
        tally->fast += sight->fast;
    }
}

bool tl_misuse_session(const struct tl_api *api, const struct tl_local_queue *queue,
                       const struct tl_request *request, const char *visitor, uint64_t generation,
                       tl_place place, struct tl_refusal *refusal)
{
    struct tl_metrics *metrics = api->env->metrics;
    enum tl_sharing_mode mode = tl_local_queue_settings(queue)->shared_sessions;
    const char *name = tl_local_queue_name(queue);
    struct tl_address address;
    int64_t now_ms = tl_clock_ms();
    if (!tl_visitor_address(api, request, &address))
        return true;
    const struct tl_sharing_sight sight =
        tl_sharing_see(api->sharing, name, generation, place, &address,
                       tl_request_header(request, "User-Agent"), now_ms);
    if (sight.noticed || sight.fast)
        count_session(api, name, &sight);
    if (sight.noticed && mode != TL_SHARING_COUNT)
        log_session(name, visitor, &address, &api->misuse->shared_log, now_ms,
                    "is used by several clients in turn");
    if (sight.fast)
        log_session(name, visitor, &address, &api->misuse->fast_log, now_ms,
                    "is checked faster than a person browses");
    if (!sight.shared || !sight.newer || mode != TL_SHARING_REFUSE)
        return true;
    tl_metrics_add(metrics, TL_WORKER_SHARED_REFUSED, 1);
    return tl_refuse(refusal, TL_REFUSAL_SHARED,
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

void tl_misuse_tick(const struct tl_api *api, int64_t now_ms)
{
    struct tl_misuse *misuse = api->misuse;
    if (now_ms - misuse->reported_ms < TL_SIGNS_PERIOD_MS)
        return;
    misuse->reported_ms = now_ms;
    for (size_t i = 0; i < misuse->tallies.n; i++) {
        const struct tl_tally *tally = &misuse->tallies.list[i];
        struct tl_signs signs = {
            .failed = tally->failed, .shared = tally->shared, .fast = tally->fast};
        char text[TL_SIGNS_TEXT_MAX];
        name_networks(&tally->joins, &signs.joins);
        name_networks(&tally->failures, &signs.failures);
        if (signs.failed + signs.shared + signs.fast + signs.joins.n == 0)
            continue;
        tl_signs_format(&signs, text);
        if (tl_queue_env_takes_notes(api->env) && tl_queues_find(api->queues, tally->queue) != NULL)
            (void)tl_ingest_note(api->env->ingest, TL_NOTE_SIGNS, tally->queue, text);
    }
    misuse->tallies.n = 0;
}
