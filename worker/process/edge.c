/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <uv.h>

#include "common/auth/keyring.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/net.h"
#include "common/role/program.h"
#include "common/role/signals.h"
#include "worker/api/handlers.h"
#include "worker/api/worker.h"
#include "worker/archive/archive.h"
#include "worker/feed/follower.h"
#include "worker/feed/ingest.h"
#include "worker/http/server.h"
#include "worker/process/process.h"
#include "worker/report/worker_metrics.h"
#include "worker/verify/verdict.h"
#include "worker/verify/verifier.h"
#include "worker/visit/subscribers.h"
#include "worker/visit/visit.h"

enum {
    TICK_MS = 50,
    SWEEP_MS = 10, /* short, so that telling a crowd never blocks the loop for long */
    FILES_LATER = 16,
    FILES_LOOKED_AT = 1024,
    CONNECTIONS_MIN = 8,
    DRAIN_EXTRA_MS = 1000,
    SEND_AWAY_MS = 2000, /* event streams end spread over this time */
    LAST_TURNS = 3,
    START_WAIT_MS = 2000,
    LOG_EVERY_MS = 10000,
};

struct edge {
    struct tl_shared *shared;
    const struct tl_config *config; /* of the start */
    const char *role;               /* for the log */
    unsigned i;
    int listen_fd;
    struct tl_slot *slot; /* on the board */
    uv_loop_t loop;
    uv_timer_t tick;
    uv_timer_t sweep; /* for subscribers */
    uv_prepare_t turn_end;
    uv_poll_t signals_poll;
    struct tl_signals signals;
    struct tl_queue_env env;
    char id[33]; /* this process among all workers, as the function apply knows it */
    struct tl_worker worker;
    uint64_t unavailable; /* requests answered 503 that are logged */
    struct tl_log_limit unavailable_log, full_log;
    int64_t since_ms; /* start of this process */
    int64_t drain_until_ms;
    bool failed;
};

static uint64_t connections(const struct edge *edge)
{
    return (uint64_t)tl_metrics_get(edge->env.metrics, TL_WORKER_EVENT_STREAMS) +
           tl_server_counts(edge->worker.server).connections;
}

/* ---- answers of the ingest thread ---- */

static void note_store(struct edge *edge, bool up, enum tl_error_kind refuses)
{
    if (up != edge->env.ingest_up || refuses == edge->env.refuses)
        tl_info(up ? "connected to the store" : "the store cannot be reached: joins are refused");
    edge->env.ingest_up = up;
    if (refuses == edge->env.refuses)
        return;
    edge->env.refuses = refuses;
    if (refuses == TL_OK)
        tl_info("the store takes joins again");
    else
        tl_warn("%s",
                tl_readiness_text(refuses == TL_ERR_OOM ? TL_STORE_NO_MEMORY : TL_STORE_NO_DISK));
}

static void on_answer(void *context, const struct tl_job *job)
{
    struct edge *edge = context;
    const int64_t now_ms = tl_clock_ms();
    if (job->kind == TL_INGEST_BATCH) {
        const struct tl_batch_receipt receipt = tl_ingest_receipt(job);
        tl_queues_batch_sent(&edge->worker.queues, job->queue, &receipt, now_ms);
    } else if (job->kind == TL_INGEST_CHECK) {
        const struct tl_batch_check check = tl_ingest_checked(job);
        tl_queues_batch_checked(&edge->worker.queues, job->queue, job->number, &check, now_ms);
    } else if (job->kind == TL_INGEST_LOOKUP) {
        enum tl_reason reason;
        const enum tl_lookup_found found = tl_ingest_found(job, &reason);
        tl_waits_found(&edge->worker, job->number, found, reason);
    } else if (job->kind == TL_INGEST_DRAWN) {
        size_t length;
        const void *ids = tl_ingest_ids(job, &length);
        tl_waits_drawn(&edge->worker, job->number, ids, length);
    } else if (job->kind == TL_INGEST_STORE) {
        note_store(edge, job->up, job->refuses);
    }
}

/* Before the loop sleeps: the commands of this turn go to the store as one batch. */
static void on_turn_end(uv_prepare_t *turn_end)
{
    struct edge *edge = turn_end->data;
    tl_queues_flush(&edge->worker.queues);
}

/* ---- drain ---- */

static void drain(struct edge *edge)
{
    int64_t now_ms = tl_clock_ms();
    if (edge->env.draining)
        return;
    tl_info("stopping: held requests are answered first");
    edge->env.draining = true;
    edge->drain_until_ms = now_ms + edge->config->http.join_wait_ms + DRAIN_EXTRA_MS;
    tl_server_quiesce(edge->worker.server);
    /* Stop listening, so that no client is stuck in the backlog and the next process can have the
     * port at once. */
    if (!edge->shared->keeps_listening && shutdown(edge->listen_fd, SHUT_RDWR) != 0)
        tl_debug("shutdown of the listening socket failed");
    tl_subscribers_drain(&edge->worker, now_ms, now_ms + SEND_AWAY_MS);
    tl_queues_farewell(&edge->worker.queues);
}

/* ---- time and signals ---- */

/* Descriptors that this process has or will have beside connections of visitors: those open now,
 * and some for what comes and goes (connections to the store, files that are read again). */
static uint64_t files_beside(void)
{
    uint64_t n = FILES_LATER + TL_SERVER_FILES_SPARE;
    for (int fd = 0; fd < FILES_LOOKED_AT; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

/* As many connections as wanted, or as the limit of open files allows: at that limit nothing could
 * be accepted, not even to be refused. */
static uint64_t connections_allowed(uint64_t wanted)
{
    struct rlimit limit;
    uint64_t beside = files_beside();
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return wanted;
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted + beside)
        return wanted;
    uint64_t allowed =
        limit.rlim_cur > beside + CONNECTIONS_MIN ? limit.rlim_cur - beside : CONNECTIONS_MIN;
    tl_warn("at most %llu connections instead of %llu (http.max_connections): the limit of open "
            "files is %llu, and each worker process needs %llu; raise it (systemd: LimitNOFILE, "
            "containers: ulimits nofile, a shell: ulimit -n) or lower http.max_connections",
            (unsigned long long)allowed, (unsigned long long)wanted,
            (unsigned long long)limit.rlim_cur, (unsigned long long)(wanted + beside));
    return allowed;
}

/* Serving begins when the lines are loaded: until then connections wait in the socket's backlog,
 * which is better than a refusal. If that takes too long, visitors are told why. */
static void serve_when_ready(struct edge *edge, int64_t now_ms)
{
    struct tl_error err = {0};
    const struct tl_config *config = edge->config;
    if (edge->worker.server != NULL || edge->env.draining ||
        (tl_queues_readiness(&edge->worker.queues) != TL_READY &&
         now_ms - edge->since_ms < START_WAIT_MS))
        return;
    edge->worker.connections_max = connections_allowed(config->http.max_connections);
    const struct tl_server_settings server = {.listen_fd = edge->listen_fd,
                                              .max_connections = edge->worker.connections_max,
                                              .connections_per_address =
                                                  config->http.connections_per_address,
                                              .proxies = edge->worker.proxies,
                                              .idle_timeout_ms = config->http.idle_timeout_ms,
                                              .max_body = config->http.max_body,
                                              .visit_size = sizeof(struct tl_visit),
                                              .metrics = edge->env.metrics,
                                              .context = &edge->worker,
                                              .handle = tl_worker_handle};
    edge->worker.server = tl_server_new(&edge->loop, &server, &err);
    if (edge->worker.server != NULL)
        return;
    tl_log(TL_LOG_FATAL, &(struct tl_log_fields){.error = &err}, "cannot serve");
    edge->failed = true;
    uv_stop(&edge->loop);
}

static void on_sweep(uv_timer_t *timer)
{
    struct edge *edge = timer->data;
    tl_subscribers_sweep(&edge->worker, tl_clock_ms());
}

/* Logs, at most once per period, which limits visitors run into. */
static void log_limits(struct edge *edge, int64_t now_ms)
{
    unsigned suppressed;
    const uint64_t unavailable = tl_server_counts(edge->worker.server).unavailable;
    if (unavailable > edge->unavailable &&
        tl_log_allow(&edge->unavailable_log, now_ms, LOG_EVERY_MS, &suppressed)) {
        tl_warn("requests answered 503 since the last such line: %llu (%s)",
                (unsigned long long)(unavailable - edge->unavailable),
                edge->env.full ? "too many commands are in progress"
                               : tl_readiness_text(tl_queues_readiness(&edge->worker.queues)));
        edge->unavailable = unavailable;
    }
    if (edge->worker.server != NULL && connections(edge) >= edge->worker.connections_max &&
        tl_log_allow(&edge->full_log, now_ms, LOG_EVERY_MS, &suppressed))
        tl_warn("all %llu connections (http.max_connections) are in use: event streams are cut "
                "short, connections that wait for their client are closed; raise the limit or add "
                "workers",
                (unsigned long long)edge->worker.connections_max);
}

static void on_tick(uv_timer_t *timer)
{
    struct edge *edge = timer->data;
    struct tl_metrics *metrics = edge->env.metrics;
    struct tl_slot *slot = edge->slot;
    int64_t now_ms = tl_clock_ms();
    serve_when_ready(edge, now_ms);
    tl_server_tick(edge->worker.server, now_ms);
    tl_worker_tick(&edge->worker, now_ms);
    tl_queues_tick(&edge->worker.queues, now_ms);
    tl_metrics_set(metrics, TL_WORKER_IN_FLIGHT,
                   (int64_t)tl_queues_in_flight(&edge->worker.queues));
    tl_metrics_set(metrics, TL_WORKER_CONNECTIONS, (int64_t)connections(edge));
    tl_metrics_set(metrics, TL_WORKER_CONNECTIONS_MAX, (int64_t)edge->worker.connections_max);
    tl_metrics_set(metrics, TL_WORKER_WEBHOOKS, (int64_t)edge->config->n_webhooks);
    log_limits(edge, now_ms);
    tl_metrics_set(metrics, TL_WORKER_HELD, (int64_t)tl_waits_count(&edge->worker.waits));
    atomic_store(&slot->readiness, (int)tl_queues_readiness(&edge->worker.queues));
    atomic_store(&slot->accepted, (int64_t)tl_server_counts(edge->worker.server).accepted);
    atomic_store(&slot->accepts, edge->worker.server != NULL && !edge->env.draining);
    atomic_fetch_add(&slot->beats, 1);
    if (!edge->env.draining)
        return;
    bool drained =
        tl_worker_idle(&edge->worker) && tl_server_counts(edge->worker.server).requests == 0;
    if (drained || now_ms >= edge->drain_until_ms)
        uv_stop(&edge->loop);
}

static bool take_keys(void *context, const struct tl_config *config, struct tl_error *err)
{
    struct edge *edge = context;
    if (!tl_worker_reload(&edge->worker, config, err))
        return false;
    atomic_store(&edge->slot->ticket_key, tl_keyring_fingerprint(edge->worker.secrets.keyring));
    return true;
}

static void on_signal(uv_poll_t *poll, int status, int events)
{
    struct edge *edge = poll->data;
    enum tl_signal signal;
    (void)status;
    (void)events;
    while ((signal = tl_signals_next(&edge->signals)) != TL_SIGNAL_NONE) {
        if (signal == TL_SIGNAL_STOP)
            drain(edge);
        else if (signal == TL_SIGNAL_RELOAD)
            tl_reload(&(struct tl_reload){.config_path = edge->shared->config_path,
                                          .role = edge->role,
                                          .take = take_keys,
                                          .context = edge,
                                          .outcome = &edge->shared->board.head->reload,
                                          .taken = "keys, pages of events, queues in passthrough"});
    }
}

/* ---- life ---- */

static bool start_api(struct edge *edge, struct tl_error *err)
{
    struct tl_shared *shared = edge->shared;
    edge->slot = &shared->board.slots[edge->i];
    edge->env = (struct tl_queue_env){.worker_id = edge->id,
                                      .metrics = shared->board.metrics[edge->i],
                                      /* not known yet: our clock stands for the store's */
                                      .store_offset_ms = tl_clock_wall_ms() - tl_clock_ms(),
                                      .queue_counts = shared->board.queue_counts};
    edge->worker = (struct tl_worker){.config = edge->config,
                                      .env = &edge->env,
                                      .brand = shared->brand,
                                      .events = &shared->events,
                                      .secrets = shared->secrets,
                                      .limiter = shared->limiter,
                                      .sharing = shared->sharing};
    shared->secrets = (struct tl_secrets){0};
    if (!tl_worker_start(&edge->worker, shared->files, &edge->loop, err))
        return false;
    atomic_store(&edge->slot->ticket_key, tl_keyring_fingerprint(edge->worker.secrets.keyring));
    return true;
}

static bool start_verifier(struct edge *edge, struct tl_error *err)
{
    const struct tl_config *config = edge->config;
    const char *url = config->challenge_service.verify_url;
    const struct tl_verifier_settings settings = {
        .url =
            url[0] != '\0' ? url : tl_provider_of(config->challenge_service.provider)->verify_url,
        .rules = {.hostname = config->challenge_service.hostname,
                  .min_score = config->challenge_service.min_score},
        .max_concurrent = config->challenge_service.max_concurrent,
        .metrics = edge->env.metrics,
        .context = &edge->worker,
        .ended = tl_verifications_ended};
    if (!tl_config_has_service(config, NULL))
        return true;
    edge->env.verifier = tl_verifier_new(&edge->loop, &settings, err);
    return edge->env.verifier != NULL;
}

static void on_archived(void *context, const struct tl_archive_job *answer)
{
    struct edge *edge = context;
    tl_waits_archived(&edge->worker, answer);
}

static bool start_archive(struct edge *edge, struct tl_error *err)
{
    const struct tl_archive_settings settings = {.url = edge->config->archive.url,
                                                 .key_path = edge->config->secrets.archive_key,
                                                 .metrics = edge->env.metrics,
                                                 .context = edge,
                                                 .answered = on_archived};
    if (settings.url[0] == '\0')
        return true;
    edge->env.archive = tl_archive_new(&edge->loop, &settings, err);
    return edge->env.archive != NULL;
}

static bool start_threads(struct edge *edge, struct tl_error *err)
{
    const struct tl_config *config = edge->config;
    const struct tl_redis_settings redis = tl_redis_settings_of(config, NULL);
    const struct tl_ingest_settings ingest = {.redis = redis,
                                              .key_prefix = config->redis.key_prefix,
                                              .metrics = edge->env.metrics,
                                              .context = edge,
                                              .answered = on_answer};
    const struct tl_follower_settings follower = {.redis = redis,
                                                  .key_prefix = config->redis.key_prefix,
                                                  .compares = edge->i == 0,
                                                  .context = &edge->worker,
                                                  .changed = tl_worker_take};
    edge->env.ingest = tl_ingest_new(&edge->loop, &ingest, err);
    if (edge->env.ingest == NULL)
        return false;
    edge->env.follower = tl_follower_new(&edge->loop, &follower, config, err);
    return edge->env.follower != NULL && start_verifier(edge, err) && start_archive(edge, err);
}

/* In reverse order. Every request still held gets its answer before the server is freed. */
static void stop(struct edge *edge)
{
    uv_timer_stop(&edge->tick);
    uv_timer_stop(&edge->sweep);
    tl_follower_free(&edge->env.follower);
    tl_ingest_free(&edge->env.ingest);
    edge->env.ingest_up = edge->env.follower_up = false; /* nothing more is asked */
    tl_worker_stop(&edge->worker);
    tl_verifier_free(&edge->env.verifier);
    tl_archive_free(&edge->env.archive);
    for (int turn = 0; turn < LAST_TURNS && edge->worker.server != NULL; turn++)
        uv_run(&edge->loop, UV_RUN_NOWAIT); /* sends the last answers */
    tl_server_free(&edge->worker.server);
    uv_close((uv_handle_t *)&edge->tick, NULL);
    uv_close((uv_handle_t *)&edge->sweep, NULL);
    uv_close((uv_handle_t *)&edge->turn_end, NULL);
    uv_close((uv_handle_t *)&edge->signals_poll, NULL);
    uv_run(&edge->loop, UV_RUN_DEFAULT);
    tl_worker_free(&edge->worker);
}

int tl_edge_run(struct tl_shared *shared, const char *role, unsigned i, int listen_fd)
{
    struct tl_error err = {0};
    struct edge edge = {.shared = shared,
                        .config = shared->config,
                        .role = role,
                        .i = i,
                        .listen_fd = listen_fd,
                        .since_ms = tl_clock_ms()};
    tl_program_id("worker", edge.id);
    bool ok = tl_signals_open(&edge.signals, &err) && start_api(&edge, &err);
    if (ok && uv_loop_init(&edge.loop) == 0) {
        uv_timer_init(&edge.loop, &edge.tick);
        uv_timer_init(&edge.loop, &edge.sweep);
        uv_prepare_init(&edge.loop, &edge.turn_end);
        uv_poll_init(&edge.loop, &edge.signals_poll, edge.signals.fd);
        edge.tick.data = edge.sweep.data = edge.turn_end.data = edge.signals_poll.data = &edge;
        uv_timer_start(&edge.tick, on_tick, TICK_MS, TICK_MS);
        uv_timer_start(&edge.sweep, on_sweep, SWEEP_MS, SWEEP_MS);
        uv_prepare_start(&edge.turn_end, on_turn_end);
        uv_poll_start(&edge.signals_poll, UV_READABLE, on_signal);
        ok = start_threads(&edge, &err);
        if (ok)
            uv_run(&edge.loop, UV_RUN_DEFAULT);
        stop(&edge);
        uv_loop_close(&edge.loop);
    }
    if (!ok)
        tl_log(TL_LOG_FATAL, &(struct tl_log_fields){.error = &err}, "cannot start");
    tl_worker_free(&edge.worker);
    tl_signals_close(&edge.signals);
    return ok && !edge.failed ? 0 : 1;
}
