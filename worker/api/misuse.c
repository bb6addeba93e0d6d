#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/prefix.h"
#include "worker/api/misuse.h"
#include "worker/api/visitor.h"
#include "worker/http/sharing.h"
#include "worker/report/hitters.h"
#include "worker/report/worker_metrics.h"

enum {
    LOG_EVERY_MS = 10000,
    MANY_JOINS = 60,    /* of one network in a minute, in one process */
    MANY_FAILURES = 60, /* likewise */
};

struct tl_misuse {
    struct tl_hitters joins, failures;
    struct tl_log_limit joins_log, failures_log, shared_log, fast_log;
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

/* Tells streams apart; two names may have the same number (FNV-1a). */
static uint32_t stream_of(const char *queue)
{
    uint32_t number = UINT32_C(2166136261);
    for (; *queue != '\0'; queue++)
        number = (number ^ (unsigned char)*queue) * UINT32_C(16777619);
    return number;
}

/* Counts one of this kind. Above `many` it counts as misuse, and is logged. */
static void note(const struct tl_api *api, const struct tl_request *request, const char *queue,
                 struct tl_hitters *hitters, enum tl_worker_metric metric, uint32_t many,
                 struct tl_log_limit *limit, const char *what)
{
    struct tl_address address;
    char text[TL_PREFIX_TEXT_MAX];
    unsigned suppressed;
    int64_t now_ms = tl_clock_ms();
    if (!tl_visitor_address(api, request, &address))
        return;
    const struct tl_prefix prefix = tl_prefix_of(&address, TL_PREFIX_IPV4, TL_PREFIX_IPV6);
    uint32_t count = tl_hitters_add(hitters, &prefix, stream_of(queue), now_ms);
    if (count <= many)
        return;
    tl_metrics_add(api->env->metrics, metric, 1);
    if (!tl_log_allow(limit, now_ms, LOG_EVERY_MS, &suppressed))
        return;
    tl_prefix_format(&prefix, text);
    tl_log(TL_LOG_WARN, &(struct tl_log_fields){.queue = queue},
           "%s sent %u %s to this process within a minute, of %llu in all; "
           "`tellerline block %s` refuses it",
           text, count, what, (unsigned long long)hitters->total, text);
}

void tl_misuse_join(const struct tl_api *api, const struct tl_request *request, const char *queue)
{
    note(api, request, queue, &api->misuse->joins, TL_WORKER_JOINS_MANY, MANY_JOINS,
         &api->misuse->joins_log, "joins");
}

void tl_misuse_failed(const struct tl_api *api, const struct tl_request *request, const char *queue)
{
    tl_metrics_add(api->env->metrics, TL_WORKER_CHECKS_FAILED, 1);
    note(api, request, queue, &api->misuse->failures, TL_WORKER_FAILURES_MANY, MANY_FAILURES,
         &api->misuse->failures_log, "tickets and passes that open nothing");
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
    tl_metrics_add(metrics, TL_WORKER_SESSIONS_SHARED, sight.noticed ? 1 : 0);
    tl_metrics_add(metrics, TL_WORKER_SESSIONS_FAST, sight.fast ? 1 : 0);
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
