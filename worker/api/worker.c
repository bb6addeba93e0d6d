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
#include "worker/queue/passthrough.h"
#include "worker/report/worker_metrics.h"
#include "worker/visit/answer.h"
#include "worker/visit/browser.h"
#include "worker/visit/changes.h"
#include "worker/visit/context.h"
#include "worker/visit/rejoin.h"

#include "common/auth/keyring.h"
#include "common/base/clock.h"
#include "common/base/log.h"

/* The store's answer about the place of an event stream, which asks again if need be. */
static bool tell_streams(struct tl_visit *visit)
{
    struct tl_subscribers *subscribers = visit->worker->subscribers;
    const struct tl_ticket *ticket = &visit->ticket;
    if (tl_place_seq(ticket->place) != 0)
        tl_subscribers_look(subscribers, visit->queue, ticket->place, tl_clock_ms());
    else if (visit->wait.known)
        tl_subscribers_over(subscribers, visit->queue, ticket, visit->wait.ended, tl_clock_ms());
    free(visit);
    return true;
}

/* For event streams: asks the store about a place that the line does not know. */
static void ask_place(void *context, struct tl_queue *queue, const struct tl_ticket *ticket)
{
    struct tl_worker *worker = context;
    struct tl_visit *visit = malloc(sizeof(*visit));
    if (visit == NULL)
        return; /* the stream asks again */
    *visit = tl_visit_of(worker, queue, ticket);
    if (!tl_wait_lookup(visit, tell_streams))
        free(visit);
}

/* The place of a request that waited for a change is lost. Is that a join, which gets a new place?
 * Not if the request brought a ticket with which the place comes back, or asks about one. */
static bool joins_anew(const struct tl_visit *visit, bool returns)
{
    struct tl_ticket brought;
    bool numbered = tl_visitor_ticket(visit, &brought) && tl_place_seq(brought.place) != 0;
    return !numbered || (!returns && strcmp(tl_request_method(visit->request), "POST") == 0);
}

/* For long polls, and joins about to be admitted. */
static void changed(void *context, struct tl_queue *queue, struct tl_request *request,
                    const struct tl_ticket *ticket, bool give_ticket)
{
    struct tl_visit *visit = tl_visit_begin(context, request, queue->name);
    bool returns = tl_queue_may_return(queue, ticket);
    bool lost = returns || tl_queue_outdated(queue, ticket);
    visit->queue = queue;
    visit->ticket = *ticket;
    if (give_ticket && lost && joins_anew(visit, returns)) {
        visit->ticket.invite = TL_TICKET_TRUSTED;
        (void)tl_answer_pending(visit);
        return;
    }
    visit->ticket.issued = (uint32_t)(tl_queue_env_store_ms(queue->env, tl_clock_ms()) / 1000);
    if (!tl_answer_anew(visit, give_ticket))
        tl_render_refusal(request, &visit->refusal);
}

/* Likewise. */
static void refuse_waiting(void *context, struct tl_queue *queue, struct tl_request *request,
                           bool blocked)
{
    const struct tl_worker *worker = context;
    if (blocked)
        tl_metrics_add(worker->env->metrics, TL_WORKER_BLOCKED, 1);
    tl_render_refused(request,
                      blocked          ? TL_REFUSAL_BLOCKED
                      : queue->deleted ? TL_REFUSAL_NO_QUEUE
                                       : TL_REFUSAL_STOPPING,
                      "");
}

static bool load(struct tl_worker *worker, const struct tl_worker_settings *settings,
                 struct tl_error *err)
{
    const struct tl_config *config = settings->config;
    worker->secrets = *settings->secrets;
    *settings->secrets = (struct tl_secrets){0};
    worker->brand = settings->brand;
    worker->languages = settings->brand->languages;
    worker->events = settings->events;
    if ((worker->proxies = tl_networks_parse(config->http.trusted_proxies, err)) == NULL ||
        (worker->bypass = tl_networks_parse(config->bypass.networks, err)) == NULL)
        return false;
    worker->env->passthrough = tl_passthrough_new(settings->files);
    worker->passes = tl_recent_new(TL_RECENT_PASSES);
    worker->misuse = tl_misuse_new();
    worker->service.tokens = tl_recent_new(TL_RECENT_TOKENS);
    worker->clients = tl_clients_new(config->http.streams_per_address);
    worker->queues = tl_queues_new(worker->env, config->worker.max_pending);
    const struct tl_subscribers_settings subscribers = {
        .loop = settings->loop,
        .queues = worker->queues,
        .metrics = settings->env->metrics,
        .clients = worker->clients,
        .per_ticket = config->http.streams_per_ticket,
        .context = worker,
        .telling = {.metrics = settings->env->metrics,
                    .context = worker,
                    .write_view = tl_answer_write_view},
        .answer = changed,
        .refuse = refuse_waiting,
        .ask_number = tl_rejoin_ask,
        .ask_place = ask_place};
    worker->subscribers = tl_subscribers_new(&subscribers);
    if (worker->clients == NULL || worker->queues == NULL || worker->subscribers == NULL ||
        worker->passes == NULL || worker->env->passthrough == NULL || worker->misuse == NULL ||
        worker->service.tokens == NULL)
        return tl_error_set(err, TL_ERR_NOMEM, "no memory for the API");
    return true;
}

const size_t tl_worker_visit_size = sizeof(struct tl_visit);

struct tl_worker *tl_worker_new(const struct tl_worker_settings *settings, struct tl_error *err)
{
    struct tl_worker *worker = calloc(1, sizeof(*worker));
    if (worker == NULL) {
        tl_error_set(err, TL_ERR_NOMEM, "no memory for the API");
        return NULL;
    }
    worker->config = settings->config;
    worker->env = settings->env;
    worker->limiter = settings->limiter;
    worker->sharing = settings->sharing;
    worker->process = settings->process;
    worker->stream_fits = settings->stream_fits;
    settings->env->worker = worker;
    settings->env->settle = tl_changes_settled;
    if (!load(worker, settings, err))
        tl_worker_free(&worker);
    return worker;
}

void tl_worker_stop(struct tl_worker *worker)
{
    tl_waits_drop(worker, NULL);
    tl_subscribers_end(worker->subscribers, NULL);
    tl_queues_clear(worker->queues);
}

void tl_worker_free(struct tl_worker **worker)
{
    if (*worker == NULL)
        return;
    tl_subscribers_free(&(*worker)->subscribers);
    tl_queues_free(&(*worker)->queues);
    tl_clients_free(&(*worker)->clients);
    tl_misuse_free(&(*worker)->misuse);
    tl_recent_free(&(*worker)->service.tokens);
    tl_networks_free(&(*worker)->proxies);
    tl_networks_free(&(*worker)->bypass);
    tl_passthrough_free(&(*worker)->env->passthrough);
    tl_recent_free(&(*worker)->passes);
    tl_secrets_free(&(*worker)->secrets);
    free(*worker);
    *worker = NULL;
}

bool tl_worker_reload(struct tl_worker *worker, const struct tl_config *config,
                      struct tl_error *err)
{
    struct tl_secrets fresh;
    struct tl_passthrough *passthrough = tl_passthrough_new(config);
    if (passthrough == NULL)
        return tl_error_set(err, TL_ERR_NOMEM, "no memory for the queues");
    struct tl_event_looks events = {0};
    if (!tl_page_read(config, worker->languages, NULL, &events, err) ||
        !tl_secrets_load(&fresh, config, false, err)) {
        tl_event_looks_free(&events);
        tl_passthrough_free(&passthrough);
        return false;
    }
    tl_passthrough_free(&worker->env->passthrough);
    worker->env->passthrough = passthrough;
    tl_event_looks_free(worker->events);
    *worker->events = events;
    tl_secrets_free(&worker->secrets);
    worker->secrets = fresh;
    tl_recent_clear(worker->passes);
    return true;
}

void tl_worker_handle(void *context, struct tl_request *request)
{
    const struct tl_worker *worker = context;
    struct tl_refusal refusal;
    tl_cross_site_share(worker, request);
    if (tl_cross_site_preflight(worker, request))
        return;
    if (tl_cross_site_allows(worker, request, &refusal))
        tl_routes_handle(context, request);
    else
        tl_routes_refuse(request, &refusal);
}

void tl_worker_too_large(void *context, struct tl_request *request)
{
    const struct tl_worker *worker = context;
    struct tl_refusal refusal;
    tl_cross_site_share(worker, request);
    tl_refuse(&refusal, TL_REFUSAL_TOO_LARGE, "A body may have at most %llu bytes",
              (unsigned long long)worker->config->http.max_body);
    tl_routes_refuse(request, &refusal);
}

void tl_worker_malformed(void *context, struct tl_request *request, const char *problem)
{
    struct tl_refusal refusal;
    (void)context;
    tl_refuse(&refusal, TL_REFUSAL_MALFORMED, "%s", problem);
    tl_routes_refuse(request, &refusal);
}

void tl_worker_tick(struct tl_worker *worker, int64_t now_ms)
{
    tl_verifications_tick(worker, now_ms);
    tl_waits_tick(worker, now_ms);
    tl_misuse_tick(worker, now_ms);
}
