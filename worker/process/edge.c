#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>

#include <uv.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/role/reload.h"
#include "common/role/signals.h"
#include "common/role/start.h"
#include "worker/api/api.h"
#include "worker/feed/follower.h"
#include "worker/feed/ingest.h"
#include "worker/http/server.h"
#include "worker/process/edge.h"
#include "worker/report/worker_metrics.h"

enum {
    TICK_MS = 50,
    SWEEP_MS = 10,     /* short, so that telling a crowd never blocks the loop for long */
    FILES_BESIDE = 64, /* descriptors for everything but visitors' connections */
    DRAIN_EXTRA_MS = 1000,
    SEND_AWAY_MS = 2000, /* event streams end spread over this time */
    LAST_TURNS = 3,
    START_WAIT_MS = 2000,
};

struct edge {
    const struct tl_edge_settings *settings;
    const struct tl_config *config;
    uv_loop_t loop;
    uv_timer_t tick;
    uv_timer_t sweep; /* for subscribers */
    uv_poll_t signals_poll;
    struct tl_signals signals;
    struct tl_queue_env env;
    char id[33]; /* this process among all workers, as the apply script knows it */
    struct tl_api *api;
    struct tl_queues *queues; /* the api's */
    struct tl_holds *holds;   /* the api's */
    struct tl_ingest *ingest;
    struct tl_follower *follower;
    struct tl_server *server; /* NULL until the lines are loaded */
    uint64_t connections_max; /* event streams and the server's connections together */
    int64_t since_ms;         /* start of this process */
    int64_t drain_until_ms;
    bool failed;
};

/* ---- what the queues ask for ---- */

static bool can_send(void *context)
{
    const struct edge *edge = context;
    return tl_queue_env_store_up(&edge->env) &&
           tl_queues_in_flight(edge->queues) < edge->config->worker.max_pending;
}

static void on_rebuild(void *context, const char *queue)
{
    const struct edge *edge = context;
    tl_follower_rebuild(edge->follower, queue);
}

static void on_reload_settings(void *context, const char *queue)
{
    const struct edge *edge = context;
    tl_follower_reload(edge->follower, queue);
}

static void on_settled(void *context, struct tl_local_queue *queue,
                       struct tl_pending_command *pending, const struct tl_pending_result *result)
{
    const struct edge *edge = context;
    tl_api_settled(edge->api, queue, pending, result);
}

static void on_changed(void *context, struct tl_local_queue *queue,
                       const struct tl_event_entry *entry, int64_t now_ms)
{
    (void)context;
    tl_subscribers_entry(tl_local_queue_subscribers(queue), entry, now_ms);
}

/* ---- what the handlers ask for ---- */

static bool ask_store(void *process, const char *queue, const char *visitor, tl_place place,
                      uint64_t number)
{
    const struct edge *edge = process;
    return tl_ingest_look(edge->ingest, queue, visitor, place, number);
}

static bool stream_fits(void *process)
{
    const struct edge *edge = process;
    uint64_t spare = edge->connections_max / 100; /* for the requests of others */
    return tl_queues_subscribers(edge->queues) + tl_server_connections(edge->server) + spare <
           edge->connections_max;
}

/* ---- callbacks of the ingest thread and the server ---- */

static void on_sent(void *context, const char *queue, uint64_t number,
                    const struct tl_error *refusal)
{
    const struct edge *edge = context;
    if (refusal != NULL)
        tl_log(TL_LOG_WARN, &(struct tl_log_fields){.queue = queue, .error = refusal},
               "the store did not take a batch");
    tl_queues_batch_sent(edge->queues, queue, number, refusal == NULL);
}

static void on_found(void *context, uint64_t number, enum tl_lookup_found found,
                     enum tl_reason reason)
{
    const struct edge *edge = context;
    tl_holds_found(edge->holds, number, found, reason);
}

static void on_ingest_store(void *context, bool up)
{
    struct edge *edge = context;
    edge->env.ingest_up = up;
    tl_info(up ? "connected to the store" : "the store cannot be reached: joins are refused");
}

static void on_answered(void *context, unsigned status)
{
    const struct edge *edge = context;
    enum tl_worker_metric metric = status < 400   ? TL_WORKER_ANSWERS_OK
                                   : status < 500 ? TL_WORKER_ANSWERS_REFUSED
                                                  : TL_WORKER_ANSWERS_FAILED;
    tl_metrics_add(edge->settings->metrics, metric, 1);
}

static void on_turn_end(void *context)
{
    const struct edge *edge = context;
    tl_queues_flush(edge->queues, edge->ingest);
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
    tl_server_quiesce(edge->server);
    /* Stop listening, so that no client is stuck in the backlog and the next process can have the
     * port at once. */
    if (shutdown(edge->settings->listen_fd, SHUT_RDWR) != 0)
        tl_debug("shutdown of the listening socket failed");
    tl_queues_drain(edge->queues, now_ms, now_ms + SEND_AWAY_MS);
}

static bool is_drained(const struct edge *edge)
{
    return tl_holds_count(edge->holds) == 0 && tl_server_requests(edge->server) == 0 &&
           tl_queues_drained(edge->queues);
}

/* ---- time and signals ---- */

/* As many connections as wanted, or as the system allows. */
static uint64_t connections_allowed(uint64_t wanted)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return wanted;
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted + FILES_BESIDE)
        return wanted;
    uint64_t allowed =
        limit.rlim_cur > 2 * FILES_BESIDE ? limit.rlim_cur - FILES_BESIDE : FILES_BESIDE;
    tl_warn("at most %llu connections: the limit of open files is %llu, http.max_connections asks "
            "for %llu",
            (unsigned long long)allowed, (unsigned long long)limit.rlim_cur,
            (unsigned long long)wanted);
    return allowed;
}

static bool start_server(struct edge *edge, struct tl_error *err)
{
    const struct tl_config *config = edge->config;
    edge->connections_max = connections_allowed(config->http.max_connections);
    const struct tl_server_settings server = {.listen_fd = edge->settings->listen_fd,
                                              .max_connections = edge->connections_max,
                                              .idle_timeout_ms = config->http.idle_timeout_ms,
                                              .max_body = config->http.max_body,
                                              .handler_context = edge->api,
                                              .handle = tl_api_handle,
                                              .too_large = tl_api_too_large,
                                              .context = edge,
                                              .answered = on_answered,
                                              .turn_end = on_turn_end};
    edge->server = tl_server_new(&edge->loop, &server, err);
    return edge->server != NULL;
}

/* Serving begins when the lines are loaded: until then connections wait in the socket's backlog,
 * which is better than a refusal. If that takes too long, visitors are told why. */
static void serve_when_ready(struct edge *edge, int64_t now_ms)
{
    struct tl_error err = {0};
    if (edge->server != NULL || edge->env.draining ||
        (tl_queues_readiness(edge->queues) != TL_READY && now_ms - edge->since_ms < START_WAIT_MS))
        return;
    if (start_server(edge, &err))
        return;
    tl_log(TL_LOG_FATAL, &(struct tl_log_fields){.error = &err}, "cannot serve");
    edge->failed = true;
    uv_stop(&edge->loop);
}

static void on_sweep(uv_timer_t *timer)
{
    const struct edge *edge = timer->data;
    tl_queues_sweep(edge->queues, tl_clock_ms());
}

static void on_tick(uv_timer_t *timer)
{
    struct edge *edge = timer->data;
    struct tl_metrics *metrics = edge->settings->metrics;
    struct tl_slot *slot = edge->settings->slot;
    int64_t now_ms = tl_clock_ms();
    serve_when_ready(edge, now_ms);
    tl_server_expire(edge->server, now_ms);
    tl_holds_tick(edge->holds, now_ms);
    tl_queues_tick(edge->queues, now_ms);
    tl_metrics_set(metrics, TL_WORKER_IN_FLIGHT, (int64_t)tl_queues_in_flight(edge->queues));
    tl_metrics_set(
        metrics, TL_WORKER_CONNECTIONS,
        (int64_t)(tl_server_connections(edge->server) + tl_queues_subscribers(edge->queues)));
    tl_metrics_set(metrics, TL_WORKER_HELD, (int64_t)tl_holds_count(edge->holds));
    atomic_store(&slot->readiness, (int)tl_queues_readiness(edge->queues));
    atomic_fetch_add(&slot->beats, 1);
    if (edge->env.draining && (is_drained(edge) || now_ms >= edge->drain_until_ms))
        uv_stop(&edge->loop);
}

static bool take_keys(void *context, const struct tl_config *config, struct tl_error *err)
{
    return tl_api_reload(context, config, err);
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
            tl_reload(&(struct tl_reload){.config_path = edge->settings->config_path,
                                          .role = edge->settings->role,
                                          .take = take_keys,
                                          .context = edge->api,
                                          .taken = "keys"});
    }
}

/* ---- life ---- */

static bool start_api(struct edge *edge, struct tl_error *err)
{
    struct timespec wall; /* the store's clock is not known yet: ours stands for it */
    clock_gettime(CLOCK_REALTIME, &wall);
    edge->env = (struct tl_queue_env){.worker_id = edge->id,
                                      .metrics = edge->settings->metrics,
                                      .store_offset_ms = (int64_t)wall.tv_sec * 1000 +
                                                         wall.tv_nsec / 1000000 - tl_clock_ms(),
                                      .context = edge,
                                      .can_send = can_send,
                                      .rebuild = on_rebuild,
                                      .reload = on_reload_settings,
                                      .settled = on_settled,
                                      .changed = on_changed};
    const struct tl_api_settings api = {.config = edge->config,
                                        .env = &edge->env,
                                        .loop = &edge->loop,
                                        .process = edge,
                                        .ask = ask_store,
                                        .stream_fits = stream_fits};
    edge->api = tl_api_new(&api, err);
    if (edge->api == NULL)
        return false;
    edge->queues = tl_api_queues(edge->api);
    edge->holds = tl_api_holds(edge->api);
    return true;
}

static bool start_threads(struct edge *edge, struct tl_error *err)
{
    const struct tl_config *config = edge->config;
    const struct tl_redis_settings redis = {.url = config->redis.url,
                                            .ca_file = config->redis.ca_file,
                                            .timeout_ms = config->redis.timeout_ms};
    const struct tl_ingest_settings ingest = {.redis = redis,
                                              .key_prefix = config->redis.key_prefix,
                                              .metrics = edge->settings->metrics,
                                              .context = edge,
                                              .sent = on_sent,
                                              .found = on_found,
                                              .store = on_ingest_store};
    struct tl_follower_settings follower = {.redis = redis, .key_prefix = config->redis.key_prefix};
    tl_queues_follow(edge->queues, &follower);
    edge->ingest = tl_ingest_new(&edge->loop, &ingest, err);
    if (edge->ingest == NULL)
        return false;
    edge->follower = tl_follower_new(&edge->loop, &follower, config, err);
    return edge->follower != NULL;
}

static void start_handles(struct edge *edge)
{
    uv_timer_init(&edge->loop, &edge->tick);
    uv_timer_init(&edge->loop, &edge->sweep);
    uv_poll_init(&edge->loop, &edge->signals_poll, edge->signals.fd);
    edge->tick.data = edge->sweep.data = edge->signals_poll.data = edge;
    uv_timer_start(&edge->tick, on_tick, TICK_MS, TICK_MS);
    uv_timer_start(&edge->sweep, on_sweep, SWEEP_MS, SWEEP_MS);
    uv_poll_start(&edge->signals_poll, UV_READABLE, on_signal);
}

/* In reverse order. Every request still held gets its answer before the server is freed. */
static void stop(struct edge *edge)
{
    uv_timer_stop(&edge->tick);
    uv_timer_stop(&edge->sweep);
    tl_follower_free(&edge->follower);
    tl_ingest_free(&edge->ingest);
    tl_api_stop(edge->api);
    for (int turn = 0; turn < LAST_TURNS && edge->server != NULL; turn++)
        uv_run(&edge->loop, UV_RUN_NOWAIT); /* sends the last answers */
    tl_server_free(&edge->server);
    uv_close((uv_handle_t *)&edge->tick, NULL);
    uv_close((uv_handle_t *)&edge->sweep, NULL);
    uv_close((uv_handle_t *)&edge->signals_poll, NULL);
    uv_run(&edge->loop, UV_RUN_DEFAULT);
    tl_api_free(&edge->api);
}

int tl_edge_run(const struct tl_edge_settings *settings)
{
    struct tl_error err = {0};
    struct edge edge = {
        .settings = settings, .config = settings->config, .since_ms = tl_clock_ms()};
    tl_start_process_id("worker", edge.id);
    bool ok = tl_signals_open(&edge.signals, &err) && start_api(&edge, &err);
    if (ok && uv_loop_init(&edge.loop) == 0) {
        start_handles(&edge);
        ok = start_threads(&edge, &err);
        if (ok)
            uv_run(&edge.loop, UV_RUN_DEFAULT);
        stop(&edge);
        uv_loop_close(&edge.loop);
    }
    if (!ok)
        tl_log(TL_LOG_FATAL, &(struct tl_log_fields){.error = &err}, "cannot start");
    tl_api_free(&edge.api);
    tl_signals_close(&edge.signals);
    return ok && !edge.failed ? 0 : 1;
}
