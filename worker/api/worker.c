/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "worker/api/join.h"
#include "worker/api/misuse.h"
#include "worker/api/routes.h"
#include "worker/api/verifications.h"
#include "worker/api/worker.h"
#include "worker/http/refusal.h"
#include "worker/http/router.h"
#include "worker/report/worker_metrics.h"
#include "worker/visit/answer.h"
#include "worker/visit/browser.h"
#include "worker/visit/changes.h"
#include "worker/visit/context.h"
#include "worker/visit/subscribers.h"

#include "common/auth/keyring.h"
#include "common/base/clock.h"
#include "common/base/log.h"

bool tl_worker_start(struct tl_worker *worker, const struct tl_config *files, uv_loop_t *loop,
                     struct tl_error *err)
{
    const struct tl_config *config = worker->config;
    worker->env->worker = worker;
    worker->env->settle = tl_changes_settled;
    worker->languages = worker->brand->languages;
    if ((worker->proxies = tl_networks_parse(config->http.trusted_proxies, err)) == NULL ||
        (worker->bypass = tl_networks_parse(config->bypass.networks, err)) == NULL)
        return false;
    worker->passes = tl_recent_new(TL_RECENT_PASSES);
    worker->misuse = tl_misuse_new();
    worker->service.tokens = tl_recent_new(TL_RECENT_TOKENS);
    worker->clients = tl_clients_new(config->http.streams_per_address);
    worker->queues =
        (struct tl_queues){.env = worker->env, .commands_max = config->worker.max_pending};
    worker->subscribers = tl_subscribers_new(worker, loop);
    if (worker->clients == NULL || worker->subscribers == NULL || worker->passes == NULL ||
        worker->misuse == NULL || worker->service.tokens == NULL)
        return tl_error_set(err, TL_ERR_NOMEM, "no memory for the API");
    return tl_queue_env_read(worker->env, files, err);
}

void tl_worker_stop(struct tl_worker *worker)
{
    tl_waits_drop(worker, NULL);
    tl_subscribers_end(worker->subscribers, NULL);
    tl_queues_clear(&worker->queues);
}

void tl_worker_free(struct tl_worker *worker)
{
    if (worker->env == NULL)
        return;
    tl_subscribers_free(&worker->subscribers);
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
    if (!tl_page_read(config, worker->languages, NULL, &events, err) ||
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

void tl_worker_handle(void *context, struct tl_request *request, const struct tl_refusal *refusal)
{
    struct tl_worker *worker = context;
    struct tl_refusal foreign;
    tl_cross_site_share(worker, request);
    if (refusal != NULL)
        tl_routes_refuse(request, refusal);
    else if (tl_cross_site_preflight(worker, request))
        return;
    else if (tl_cross_site_allows(worker, request, &foreign))
        tl_routes_handle(worker, request);
    else
        tl_routes_refuse(request, &foreign);
}

void tl_worker_tick(struct tl_worker *worker, int64_t now_ms)
{
    tl_verifications_tick(worker, now_ms);
    tl_waits_tick(worker, now_ms);
    tl_misuse_tick(worker, now_ms);
}
