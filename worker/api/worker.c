/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "worker/api/handlers.h"
#include "worker/api/worker.h"
#include "worker/http/refusal.h"
#include "worker/http/router.h"
#include "worker/report/worker_metrics.h"
#include "worker/visit/answer.h"
#include "worker/visit/browser.h"
#include "worker/visit/subscribers.h"
#include "worker/visit/visit.h"

#include "common/auth/keyring.h"
#include "common/base/clock.h"
#include "common/base/log.h"

/* ---- what the threads tell the loop: requests are answered and event streams told ---- */

/* A command has an outcome; context is its queue. */
static void settled(void *context, struct tl_pending_command *pending,
                    const struct tl_pending_result *result)
{
    struct tl_queue *queue = context;
    struct tl_worker *worker = queue->env->worker;
    tl_queue_settled(queue, pending, result);
    if (pending->leaves && result->end == TL_PENDING_APPLIED && tl_rejoin_gave_place(result) &&
        tl_queue_serial(queue, result->place) == 0) /* else the pending ticket does not count */
        worker->leaving = tl_outbox_command(queue->outbox, TL_COMMAND_LEAVE, pending->visitor,
                                            result->place, NULL);
    tl_waits_settle(pending, result);
    worker->leaving = NULL;
    if (result->end != TL_PENDING_APPLIED)
        return;
    if (pending->kind == TL_COMMAND_JOIN)
        tl_subscribers_joined(worker, queue, pending, result, tl_clock_ms());
    else if (pending->kind == TL_COMMAND_RESTORE ||
             ((pending->kind == TL_COMMAND_RENEW || pending->kind == TL_COMMAND_CLAIM) &&
              result->outcome == TL_OUTCOME_WAITING))
        tl_subscribers_look(worker, queue, pending->place, tl_clock_ms());
}

void tl_worker_take(void *context, struct tl_change *change)
{
    struct tl_worker *worker = context;
    int64_t now_ms = tl_clock_ms();
    struct tl_taken taken = tl_queues_take(&worker->queues, change, now_ms);
    switch (taken.kind) {
    case TL_TAKEN:
        break;
    case TL_TAKEN_ENTRY:
        tl_subscribers_entry(worker, taken.queue, &taken.entry, now_ms);
        tl_events_free(&taken.entry);
        break;
    case TL_TAKEN_RECREATED:
        tl_waits_drop(worker, taken.queue);
        tl_subscribers_recreated(worker, taken.queue, now_ms);
        break;
    case TL_TAKEN_DELETED:
        tl_subscribers_end(worker, taken.queue);
        tl_waits_drop(worker, taken.queue); /* no stream is left that would ask again */
        tl_queue_free(&taken.queue);
        break;
    }
}

/* ---- the worker ---- */

bool tl_worker_start(struct tl_worker *worker, const struct tl_config *files, uv_loop_t *loop,
                     struct tl_error *err)
{
    const struct tl_config *config = worker->config;
    worker->env->worker = worker;
    worker->env->settle = settled;
    if ((worker->proxies = tl_networks_parse(config->http.trusted_proxies, err)) == NULL ||
        (worker->bypass = tl_networks_parse(config->bypass.networks, err)) == NULL)
        return false;
    worker->passes = tl_recent_new(TL_RECENT_PASSES);
    worker->misuse = tl_misuse_new();
    worker->service.tokens = tl_recent_new(TL_RECENT_TOKENS);
    worker->clients = tl_clients_new(config->http.streams_per_address);
    worker->queues =
        (struct tl_queues){.env = worker->env, .commands_max = config->worker.max_pending};
    worker->loop = loop;
    tl_subscriber_table_init(&worker->subscribers.table);
    if (worker->clients == NULL || worker->passes == NULL || worker->misuse == NULL ||
        worker->service.tokens == NULL)
        return tl_error_set(err, TL_ERR_NOMEM, "no memory for the API");
    return tl_queue_env_read(worker->env, files, err);
}

void tl_worker_stop(struct tl_worker *worker)
{
    tl_subscribers_end(worker, NULL);
    tl_waits_drop(worker, NULL);
    tl_queues_clear(&worker->queues);
}

void tl_worker_free(struct tl_worker *worker)
{
    if (worker->env == NULL)
        return;
    tl_subscribers_end(worker, NULL);
    tl_subscriber_table_clear(&worker->subscribers.table);
    tl_queues_clear(&worker->queues);
    tl_clients_free(&worker->clients);
    tl_misuse_free(&worker->misuse);
    tl_recent_free(&worker->service.tokens);
    tl_networks_free(&worker->proxies);
    tl_networks_free(&worker->bypass);
    free(worker->env->passthrough);
    worker->env->passthrough = NULL;
    tl_recent_free(&worker->passes);
    tl_secrets_free(&worker->secrets);
}

bool tl_worker_reload(struct tl_worker *worker, const struct tl_config *config,
                      struct tl_error *err)
{
    struct tl_secrets fresh;
    struct tl_event_looks events = {0};
    if (!tl_page_read(config, worker->brand->languages, NULL, &events, err) ||
        !tl_secrets_load(&fresh, config, false, err)) {
        tl_event_looks_free(&events);
        return false;
    }
    if (!tl_queue_env_read(worker->env, config, err)) {
        tl_event_looks_free(&events);
        tl_secrets_free(&fresh);
        return false;
    }
    tl_event_looks_free(worker->events);
    *worker->events = events;
    tl_secrets_free(&worker->secrets);
    worker->secrets = fresh;
    tl_recent_clear(worker->passes);
    return true;
}

/* No route fits. */
static bool refuse(struct tl_visit *visit)
{
    (void)visit;
    return false;
}

void tl_worker_handle(void *context, struct tl_request *request, const struct tl_refusal *refusal)
{
    struct tl_worker *worker = context;
    struct tl_refusal foreign;
    /* First, as pages of refusals need its time. */
    struct tl_visit *visit = tl_visit_begin(worker, request, "");
    tl_cross_site_share(worker, request);
    if (refusal != NULL) {
        tl_router_refuse(tl_routes, request, refusal);
        return;
    }
    if (tl_cross_site_preflight(worker, request))
        return;
    if (!tl_cross_site_allows(worker, request, &foreign)) {
        tl_router_refuse(tl_routes, request, &foreign);
        return;
    }
    const struct tl_route *route = tl_router_find(tl_routes, request, visit->name, &visit->refusal);
    visit->handler = route != NULL ? route->handler : refuse;
    tl_visit_take(visit, visit->handler);
}

void tl_worker_tick(struct tl_worker *worker, int64_t now_ms)
{
    tl_verifications_tick(worker, now_ms);
    tl_waits_tick(worker, now_ms);
    tl_misuse_tick(worker, now_ms);
}

bool tl_worker_idle(const struct tl_worker *worker)
{
    return tl_waits_count(&worker->waits) == 0 && tl_queues_flushed(&worker->queues) &&
           worker->subscribers.table.n == 0;
}
