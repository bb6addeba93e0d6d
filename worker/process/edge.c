#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/role/reload.h"
#include "common/role/start.h"
#include "worker/api/page_http.h"
#include "worker/api/routes.h"
#include "worker/queue/hold.h"
#include "worker/report/worker_metrics.h"

enum {
    TICK_MS = 50,
    SWEEP_MS = 10,     /* short, so that telling a crowd never holds up the loop for long */
    FILES_BESIDE = 64, /* descriptors for all that is no visitor's connection */
    DRAIN_EXTRA_MS = 1000,
    SEND_AWAY_MS = 2000, /* event streams end spread over this time */
    LAST_TURNS = 3,
    START_WAIT_MS = 2000,
};

/* ---- what is known ---- */

int64_t tl_edge_now_ms(const struct tl_edge *edge)
{
    if (edge->clock_known)
        return tl_clock_ms() + edge->clock_offset_ms;
    struct timespec now; /* until the store has been asked once */
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

bool tl_edge_store_up(const struct tl_edge *edge)
{
    return edge->ingest_up && edge->follower_up;
}

static bool lines_loaded(const struct tl_edge *edge)
{
    for (size_t i = 0; i < edge->n_rooms; i++) {
        if (edge->rooms[i]->line == NULL)
            return false;
    }
    return edge->listed;
}

enum tl_readiness tl_edge_readiness(const struct tl_edge *edge)
{
    if (edge->draining)
        return TL_DRAINING;
    if (!tl_edge_store_up(edge))
        return TL_STORE_DOWN;
    return lines_loaded(edge) ? TL_READY : TL_LINES_LOADING;
}

/* ---- callbacks of the ingest thread and the server ---- */

static void on_sent(void *context, const char *queue, uint64_t number,
                    const struct tl_error *refusal)
{
    struct tl_edge *edge = context;
    struct tl_room *room = tl_edge_room(edge, queue);
    if (refusal != NULL)
        tl_log(TL_LOG_WARN, &(struct tl_log_fields){.queue = queue, .error = refusal},
               "the store did not take a batch");
    if (room != NULL)
        tl_outbox_sent(room->outbox, number, refusal == NULL);
}

static void on_found(void *context, uint64_t token, enum tl_lookup_found found,
                     enum tl_reason reason)
{
    tl_hold_found(context, token, found, reason);
}

static void on_ingest_store(void *context, bool up)
{
    struct tl_edge *edge = context;
    edge->ingest_up = up;
    tl_info(up ? "connected to the store" : "the store cannot be reached: joins are refused");
}

static void on_answered(void *context, unsigned status)
{
    const struct tl_edge *edge = context;
    enum tl_worker_metric metric = status < 400   ? TL_WORKER_ANSWERS_OK
                                   : status < 500 ? TL_WORKER_ANSWERS_REFUSED
                                                  : TL_WORKER_ANSWERS_FAILED;
    tl_metrics_add(edge->metrics, metric, 1);
}

static void on_turn_end(void *context)
{
    tl_edge_flush(context);
}

/* ---- drain ---- */

static void drain(struct tl_edge *edge)
{
    if (edge->draining)
        return;
    tl_info("stopping: held requests are answered first");
    edge->draining = true;
    edge->drain_until_ms = tl_clock_ms() + edge->config->http.join_wait_ms + DRAIN_EXTRA_MS;
    tl_server_quiesce(edge->server);
    /* Nobody shall wait in a socket that nobody accepts from, and whoever is started next may have
     * the port at once. */
    if (shutdown(edge->listen_fd, SHUT_RDWR) != 0)
        tl_debug("shutdown of the listening socket failed");
    int64_t now_ms = tl_clock_ms();
    for (size_t i = 0; i < edge->n_rooms; i++)
        tl_push_drain(edge->rooms[i]->push, now_ms, now_ms + SEND_AWAY_MS);
}

/* Is there nothing left that somebody waits for? */
static bool drained(const struct tl_edge *edge)
{
    if (edge->holds.count > 0 || edge->lookups.count > 0 || tl_server_requests(edge->server) > 0)
        return false;
    for (size_t i = 0; i < edge->n_rooms; i++) {
        if (!tl_outbox_flushed(edge->rooms[i]->outbox) || tl_push_count(edge->rooms[i]->push) > 0)
            return false;
    }
    return true;
}

/* ---- time and signals ---- */

static uint64_t streams(const struct tl_edge *edge)
{
    uint64_t count = 0;
    for (size_t i = 0; i < edge->n_rooms; i++)
        count += tl_push_count(edge->rooms[i]->push);
    return count;
}

static void set_gauges(struct tl_edge *edge)
{
    tl_metrics_set(edge->metrics, TL_WORKER_IN_FLIGHT, (int64_t)tl_edge_in_flight(edge));
    tl_metrics_set(edge->metrics, TL_WORKER_CONNECTIONS,
                   (int64_t)(tl_server_connections(edge->server) + streams(edge)));
    tl_metrics_set(edge->metrics, TL_WORKER_HELD,
                   (int64_t)(edge->holds.count + edge->lookups.count));
}

bool tl_edge_has_room_for_stream(const struct tl_edge *edge)
{
    uint64_t spare = edge->connections_max / 100; /* for the requests of everybody else */
    return streams(edge) + tl_server_connections(edge->server) + spare < edge->connections_max;
}

/* Room for that many connections, or as many as the system allows. */
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

static bool start_server(struct tl_edge *edge, struct tl_error *err)
{
    const struct tl_config *config = edge->config;
    edge->connections_max = connections_allowed(config->http.max_connections);
    struct tl_server_settings server = {.listen_fd = edge->listen_fd,
                                        .max_connections = edge->connections_max,
                                        .idle_timeout_ms = config->http.idle_timeout_ms,
                                        .max_body = config->http.max_body,
                                        .context = edge,
                                        .handle = tl_routes_handle,
                                        .too_large = tl_routes_too_large,
                                        .answered = on_answered,
                                        .turn_end = on_turn_end};
    edge->server = tl_server_new(&edge->loop, &server, err);
    return edge->server != NULL;
}

/* Serving begins when the lines are loaded: until then connections wait in the socket, which is
 * better than being told to come again. When that takes too long, visitors are told why. */
static void serve_when_ready(struct tl_edge *edge, int64_t now_ms)
{
    struct tl_error err = {0};
    if (edge->server != NULL || edge->draining ||
        (tl_edge_readiness(edge) != TL_READY && now_ms - edge->since_ms < START_WAIT_MS))
        return;
    if (start_server(edge, &err))
        return;
    tl_log(TL_LOG_FATAL, &(struct tl_log_fields){.error = &err}, "cannot serve");
    edge->failed = true;
    uv_stop(&edge->loop);
}

static void on_sweep(uv_timer_t *timer)
{
    const struct tl_edge *edge = timer->data;
    int64_t now_ms = tl_clock_ms();
    for (size_t i = 0; i < edge->n_rooms; i++) {
        if (edge->rooms[i]->line != NULL && tl_push_count(edge->rooms[i]->push) > 0)
            tl_push_sweep(edge->rooms[i]->push, now_ms);
    }
}

static void on_tick(uv_timer_t *timer)
{
    struct tl_edge *edge = timer->data;
    int64_t now_ms = tl_clock_ms();
    serve_when_ready(edge, now_ms);
    tl_server_expire(edge->server, now_ms);
    tl_hold_tick(edge, now_ms);
    tl_edge_tend_rooms(edge, now_ms);
    set_gauges(edge);
    atomic_store(&edge->slot->readiness, (int)tl_edge_readiness(edge));
    atomic_fetch_add(&edge->slot->beats, 1);
    if (edge->draining && (drained(edge) || now_ms >= edge->drain_until_ms))
        uv_stop(&edge->loop);
}

/* The keys of the configuration; what cannot be read leaves the old ones. */
static bool load_secrets(struct tl_edge *edge, const struct tl_config *config, struct tl_error *err)
{
    struct tl_secrets fresh;
    if (!tl_secrets_load(&fresh, config, err))
        return false;
    tl_secrets_free(&edge->secrets);
    edge->secrets = fresh;
    return true;
}

static bool take_keys(void *context, const struct tl_config *config, struct tl_error *err)
{
    return load_secrets(context, config, err);
}

static void on_signal(uv_poll_t *poll, int status, int events)
{
    struct tl_edge *edge = poll->data;
    enum tl_signal signal;
    (void)status;
    (void)events;
    while ((signal = tl_signals_next(&edge->signals)) != TL_SIGNAL_NONE) {
        if (signal == TL_SIGNAL_STOP)
            drain(edge);
        else if (signal == TL_SIGNAL_RELOAD)
            tl_reload(&(struct tl_reload){.config_path = edge->config_path,
                                          .role = edge->role,
                                          .take = take_keys,
                                          .context = edge,
                                          .taken = "keys"});
    }
}

/* ---- life ---- */

static bool load_looks(struct tl_edge *edge, struct tl_error *err)
{
    edge->brand = tl_page_load_brand(edge->config, err);
    edge->proxies = tl_networks_parse(edge->config->http.trusted_proxies, err);
    edge->limiter = tl_limiter_new(edge->config->http.joins_per_minute);
    if (edge->limiter == NULL)
        return tl_error_set(err, TL_ERR_NOMEM, "no memory for the limit of joins");
    return edge->brand != NULL && edge->proxies != NULL;
}

static bool start_threads(struct tl_edge *edge, struct tl_error *err)
{
    const struct tl_config *config = edge->config;
    struct tl_redis_settings redis = {.url = config->redis.url,
                                      .ca_file = config->redis.ca_file,
                                      .timeout_ms = config->redis.timeout_ms};
    struct tl_ingest_settings ingest = {.redis = redis,
                                        .key_prefix = config->redis.key_prefix,
                                        .metrics = edge->metrics,
                                        .context = edge,
                                        .sent = on_sent,
                                        .found = on_found,
                                        .store = on_ingest_store};
    struct tl_follower_settings follower = {.redis = redis, .key_prefix = config->redis.key_prefix};
    tl_edge_follow(edge, &follower);
    edge->ingest = tl_ingest_new(&edge->loop, &ingest, err);
    if (edge->ingest == NULL)
        return false;
    edge->follower = tl_follower_new(&edge->loop, &follower, config, err);
    return edge->follower != NULL;
}

static void start_handles(struct tl_edge *edge)
{
    uv_timer_init(&edge->loop, &edge->tick);
    edge->tick.data = edge;
    uv_timer_start(&edge->tick, on_tick, TICK_MS, TICK_MS);
    uv_timer_init(&edge->loop, &edge->sweep);
    edge->sweep.data = edge;
    uv_timer_start(&edge->sweep, on_sweep, SWEEP_MS, SWEEP_MS);
    uv_poll_init(&edge->loop, &edge->signals_poll, edge->signals.fd);
    edge->signals_poll.data = edge;
    uv_poll_start(&edge->signals_poll, UV_READABLE, on_signal);
}

/* In reverse; every request still held gets its answer before the server goes. */
static void stop(struct tl_edge *edge)
{
    uv_timer_stop(&edge->tick);
    uv_timer_stop(&edge->sweep);
    tl_hold_drop_lookups(edge, NULL);
    tl_follower_free(&edge->follower);
    tl_ingest_free(&edge->ingest);
    for (size_t i = 0; i < edge->n_rooms; i++)
        tl_room_free(&edge->rooms[i]);
    free(edge->rooms);
    edge->rooms = NULL;
    edge->n_rooms = 0;
    for (int turn = 0; turn < LAST_TURNS && edge->server != NULL; turn++)
        uv_run(&edge->loop, UV_RUN_NOWAIT); /* sends what was answered just now */
    tl_server_free(&edge->server);
    uv_close((uv_handle_t *)&edge->tick, NULL);
    uv_close((uv_handle_t *)&edge->sweep, NULL);
    uv_close((uv_handle_t *)&edge->signals_poll, NULL);
    uv_run(&edge->loop, UV_RUN_DEFAULT);
    tl_brand_free(&edge->brand);
    tl_networks_free(&edge->proxies);
    tl_limiter_free(&edge->limiter);
    tl_secrets_free(&edge->secrets);
}

int tl_edge_run(const struct tl_edge_settings *settings)
{
    struct tl_error err = {0};
    struct tl_edge edge = {.role = settings->role,
                           .config_path = settings->config_path,
                           .config = settings->config,
                           .metrics = settings->metrics,
                           .listen_fd = settings->listen_fd,
                           .since_ms = tl_clock_ms(),
                           .slot = settings->slot};
    tl_start_process_id("worker", edge.id);
    if (!tl_signals_open(&edge.signals, &err)) {
        tl_log(TL_LOG_FATAL, &(struct tl_log_fields){.error = &err}, "cannot start");
        return 1;
    }
    if (uv_loop_init(&edge.loop) != 0)
        return 1;
    start_handles(&edge);
    bool ok = load_secrets(&edge, edge.config, &err) && load_looks(&edge, &err) &&
              start_threads(&edge, &err);
    if (ok)
        uv_run(&edge.loop, UV_RUN_DEFAULT);
    else
        tl_log(TL_LOG_FATAL, &(struct tl_log_fields){.error = &err}, "cannot start");
    stop(&edge);
    uv_loop_close(&edge.loop);
    tl_signals_close(&edge.signals);
    return ok && !edge.failed ? 0 : 1;
}
