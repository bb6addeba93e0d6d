/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <microhttpd.h>
#include <sodium.h>

#include "common/base/clock.h"
#include "common/base/idle_sockets.h"
#include "common/base/log.h"
#include "worker/http/clients.h"
#include "worker/http/server.h"
#include "worker/report/worker_metrics.h"

/* The library refuses requests that only an attacker sends. */
#if MHD_VERSION >= 0x01000000
#define STRICT MHD_OPTION_CLIENT_DISCIPLINE_LVL
#else
#define STRICT MHD_OPTION_STRICT_FOR_CLIENT
#endif

enum {
    CONNECTION_MEMORY = 16 * 1024, /* request line, headers and answer headers of one connection */
    SPARE = TL_SERVER_FILES_SPARE / 2,
    NEW_MS = 1000, /* time for a new connection to send its request while others make room */
    LOG_EVERY_MS = 10000,
};

struct connection {
    struct tl_idle_socket idle; /* first: listed while it is the client's turn */
    struct tl_client client;
};

struct tl_server {
    struct tl_request_host host;
    struct tl_server_settings settings;
    struct MHD_Daemon *daemon;
    uv_check_t turn;
    uv_timer_t timer; /* the library's own time-outs */
    uv_poll_t poll;
    struct tl_idle_sockets idle; /* connections without a complete request, or with an answer that
                                    is not sent yet: all but those whose request we work on */
    struct tl_clients *clients;
    uint64_t open; /* connections, without those that were taken over */
    uint64_t accepted;
    unsigned open_handles;
    int64_t now_ms; /* of this turn */
    struct tl_log_limit address_log;
};

/* ---- connections ---- */

/* Connections and event streams. */
static uint64_t taken(const struct tl_server *server)
{
    return server->open +
           (uint64_t)tl_metrics_get(server->settings.metrics, TL_WORKER_EVENT_STREAMS);
}

/* Does the address hold as many connections as one client may? A trusted proxy is no client. */
static bool holds_enough(const struct tl_server *server, const struct tl_address *address)
{
    const struct tl_networks *proxies = server->settings.proxies;
    return !tl_clients_may(server->clients, address) &&
           (proxies == NULL || !tl_networks_contain(proxies, address));
}

/* Says once per period that connections of an address are refused. */
static void log_refused(struct tl_server *server, const struct tl_address *address)
{
    unsigned suppressed;
    char text[TL_PREFIX_TEXT_MAX];
    if (!tl_log_allow(&server->address_log, server->now_ms, LOG_EVERY_MS, &suppressed))
        return;
    const struct tl_prefix prefix = tl_prefix_of(address, TL_PREFIX_IPV4, TL_PREFIX_IPV6);
    tl_prefix_format(&prefix, text);
    tl_warn("connections from %s are refused: it has %llu (http.connections_per_address) already; "
            "if it is a proxy, name it in http.trusted_proxies",
            text, (unsigned long long)server->settings.connections_per_address);
}

/* Asked before a connection is set up; when refused it is closed. The library's own limit would
 * stop it from accepting at all. */
static enum MHD_Result on_accept(void *closure, const struct sockaddr *socket, socklen_t length)
{
    struct tl_server *server = closure;
    const struct tl_server_settings *settings = &server->settings;
    struct tl_address address;
    (void)length;
    server->accepted++;
    if (taken(server) >= settings->max_connections + TL_SERVER_FILES_SPARE) {
        tl_metrics_add(settings->metrics, TL_WORKER_REFUSED_FULL, 1);
        return MHD_NO;
    }
    if (tl_address_from(socket, &address) && holds_enough(server, &address)) {
        tl_metrics_add(settings->metrics, TL_WORKER_REFUSED_ADDRESS, 1);
        log_refused(server, &address);
        return MHD_NO;
    }
    return MHD_YES;
}

/* Closes connections that have waited for their clients for longest, while there are too many. New
 * ones are spared at first: they would close each other. */
static void make_room(struct tl_server *server, int64_t now_ms)
{
    const struct tl_server_settings *settings = &server->settings;
    const struct tl_idle_socket *oldest;
    uint64_t n = taken(server) - server->idle.shut;
    for (; n > settings->max_connections && (oldest = server->idle.first) != NULL; n--) {
        if (n <= settings->max_connections + SPARE && now_ms - oldest->since_ms < NEW_MS)
            return;
        (void)tl_idle_sockets_shut_oldest(&server->idle);
        tl_metrics_add(settings->metrics, TL_WORKER_CROWDED_OUT, 1);
    }
}

static struct connection *connection_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info != NULL ? info->socket_context : NULL;
}

/* NULL when out of memory: then the connection is served, but neither watched nor counted for its
 * client. */
static struct connection *watch(struct tl_server *server, struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    struct connection *watched = info != NULL ? calloc(1, sizeof(*watched)) : NULL;
    struct tl_address address;
    if (watched == NULL)
        return NULL;
    watched->idle.fd = info->connect_fd;
    info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    if (info != NULL && info->client_addr != NULL && tl_address_from(info->client_addr, &address))
        watched->client = tl_clients_enter(server->clients, &address);
    return watched;
}

static void on_connection(void *closure, struct MHD_Connection *connection, void **context,
                          enum MHD_ConnectionNotificationCode code)
{
    struct tl_server *server = closure;
    struct connection *watched = *context;
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        server->open++;
        make_room(server, server->now_ms);
        *context = watched = watch(server, connection);
        if (watched != NULL)
            tl_idle_sockets_add(&server->idle, &watched->idle, false, server->now_ms);
        return;
    }
    server->open--;
    *context = NULL;
    if (watched == NULL)
        return;
    tl_idle_sockets_close(&server->idle, &watched->idle);
    tl_clients_leave(server->clients, watched->client);
    free(watched);
}

void tl_server_tick(struct tl_server *server, int64_t now_ms)
{
    if (server == NULL)
        return;
    /* The library stops listening when there are no descriptors. It listens again only when it
     * runs, which it does not ask for once it has no connection. */
    tl_request_host_wake(&server->host);
    size_t n = tl_idle_sockets_expire(&server->idle, now_ms, server->settings.idle_timeout_ms);
    if (n > 0)
        tl_debug("http: closed %zu connections whose client took too long", n);
}

/* ---- the library's callbacks ---- */

/* Delivers the answer. From now on it is the client's turn to take it. */
static enum MHD_Result deliver(struct tl_server *server, struct connection *connection,
                               struct tl_request *request)
{
    if (connection != NULL)
        tl_idle_sockets_add(&server->idle, &connection->idle, true, server->now_ms);
    return tl_request_deliver(request) ? MHD_YES : MHD_NO;
}

static bool may_be_handled(const struct tl_server *server, const struct tl_request *request,
                           struct tl_refusal *refusal)
{
    const char *problem = tl_request_problem(request);
    if (problem != NULL)
        return tl_refuse(refusal, TL_REFUSAL_BAD_REQUEST, "%s", problem);
    return !tl_request_too_large(request) ||
           tl_refuse(refusal, TL_REFUSAL_TOO_LARGE, "A body may have at most %llu bytes",
                     (unsigned long long)server->settings.max_body);
}

/* The request is complete, or there is a problem with its head: calls the handler and delivers the
 * answer, unless it is held. */
static enum MHD_Result dispatch(struct tl_server *server, struct connection *connection,
                                struct tl_request *request)
{
    const struct tl_server_settings *settings = &server->settings;
    struct tl_refusal refusal;
    if (connection != NULL)
        tl_idle_sockets_remove(&server->idle, &connection->idle);
    const bool ok = may_be_handled(server, request, &refusal);
    settings->handle(settings->context, request, ok ? NULL : &refusal);
    return tl_request_answered(request) ? deliver(server, connection, request) : MHD_YES;
}

/* Called when the headers are there, for each piece of the body, at its end, and again when a held
 * request was resumed. */
static enum MHD_Result on_request(void *closure, struct MHD_Connection *connection,
                                  const char *path, const char *method, const char *version,
                                  const char *upload, size_t *upload_size, void **context)
{
    struct tl_server *server = closure;
    struct tl_request *request = *context;
    if (request == NULL) {
        request = tl_request_new(&server->host, connection, method, path, version);
        *context = request;
        if (request == NULL)
            return MHD_NO;
        return tl_request_problem(request) != NULL || tl_request_too_large(request)
                   ? dispatch(server, connection_of(connection), request)
                   : MHD_YES;
    }
    if (*upload_size > 0) {
        bool ok = tl_request_add_body(request, upload, *upload_size);
        *upload_size = 0;
        return ok ? MHD_YES : MHD_NO;
    }
    return tl_request_answered(request) ? deliver(server, connection_of(connection), request)
                                        : dispatch(server, connection_of(connection), request);
}

static void on_completed(void *closure, struct MHD_Connection *connection, void **context,
                         enum MHD_RequestTerminationCode code)
{
    struct tl_server *server = closure;
    struct connection *watched = connection_of(connection);
    (void)code;
    if (watched != NULL)
        tl_idle_sockets_add(&server->idle, &watched->idle, false, server->now_ms);
    if (*context != NULL)
        tl_request_free(*context);
    *context = NULL;
}

static void on_log(void *closure, const char *format, va_list args)
{
    (void)closure;
    char text[512];
    int length = vsnprintf(text, sizeof(text), format, args);
    if (length <= 0)
        return;
    text[strcspn(text, "\n")] = '\0';
    tl_debug("http: %s", text);
}

/* ---- the loop ---- */

static void on_timer(uv_timer_t *timer)
{
    struct tl_server *server = timer->data;
    tl_request_host_wake(&server->host);
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    (void)status;
    (void)events;
    struct tl_server *server = poll->data;
    tl_request_host_wake(&server->host);
}

/* Runs the library if it has something to do, and arranges that the loop wakes up when it must run
 * again. */
static void on_turn(uv_check_t *turn)
{
    struct tl_server *server = turn->data;
    if (server->host.due) {
        server->host.due = false;
        server->now_ms = tl_clock_ms();
        MHD_run(server->daemon);
    }
    MHD_UNSIGNED_LONG_LONG timeout_ms = 0;
    bool wanted = MHD_get_timeout(server->daemon, &timeout_ms) == MHD_YES;
    if (server->host.due || (wanted && timeout_ms == 0)) {
        tl_request_host_wake(&server->host);
        return;
    }
    uv_idle_stop(&server->host.busy);
    if (!wanted)
        uv_timer_stop(&server->timer);
    else if (!uv_is_active((uv_handle_t *)&server->timer) ||
             uv_timer_get_due_in(&server->timer) > timeout_ms)
        uv_timer_start(&server->timer, on_timer, timeout_ms, 0);
}

/* ---- life ---- */

static bool start_handles(struct tl_server *server, uv_loop_t *loop)
{
    const union MHD_DaemonInfo *info =
        MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    if (info == NULL || uv_poll_init(loop, &server->poll, info->epoll_fd) != 0)
        return false;
    uv_check_init(loop, &server->turn); /* these three cannot fail */
    uv_idle_init(loop, &server->host.busy);
    uv_timer_init(loop, &server->timer);
    server->open_handles = 4;
    server->poll.data = server->turn.data = server->timer.data = server;
    uv_check_start(&server->turn, on_turn);
    return uv_poll_start(&server->poll, UV_READABLE, on_readable) == 0;
}

static void free_server(struct tl_server *server)
{
    tl_request_free_spare(&server->host);
    tl_clients_free(&server->clients);
    free(server);
}

static void on_closed(uv_handle_t *handle)
{
    struct tl_server *server = uv_handle_get_data(handle);
    if (--server->open_handles == 0)
        free_server(server);
}

/* MHD_USE_TURBO skips only checks that an edge-triggered loop does not need. */
static struct MHD_Daemon *start_daemon(struct tl_server *server)
{
    const struct tl_server_settings *settings = &server->settings;
    return MHD_start_daemon(
        MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_TURBO | MHD_USE_ERROR_LOG, 0, on_accept,
        server, on_request, server, MHD_OPTION_EXTERNAL_LOGGER, on_log, server,
        MHD_OPTION_LISTEN_SOCKET, settings->listen_fd, MHD_OPTION_NOTIFY_COMPLETED, on_completed,
        server, MHD_OPTION_NOTIFY_CONNECTION, on_connection, server, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)(settings->max_connections + 2 * TL_SERVER_FILES_SPARE), /* is never reached */
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)((settings->idle_timeout_ms + 999) / 1000),
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_MEMORY, STRICT, 1, MHD_OPTION_END);
}

struct tl_server *tl_server_new(uv_loop_t *loop, const struct tl_server_settings *settings,
                                struct tl_error *err)
{
    struct tl_server *server = calloc(1, sizeof(*server));
    struct tl_clients *clients = tl_clients_new(settings->connections_per_address);
    if (server == NULL || clients == NULL) {
        tl_error_set(err, TL_ERR_NOMEM, "no memory for the HTTP server");
        tl_clients_free(&clients);
        free(server);
        return NULL;
    }
    server->settings = *settings;
    server->clients = clients;
    server->host = (struct tl_request_host){.context = settings->context,
                                            .metrics = settings->metrics,
                                            .max_body = settings->max_body,
                                            .visit_size = settings->visit_size};
    randombytes_buf(&server->host.id_random, sizeof(server->host.id_random));
    server->daemon = start_daemon(server);
    if (server->daemon == NULL) {
        tl_error_set(err, TL_ERR_SYSTEM, "the HTTP server cannot be started");
        free_server(server);
        return NULL;
    }
    if (!start_handles(server, loop)) {
        tl_error_set(err, TL_ERR_SYSTEM, "the HTTP server cannot be put on the loop");
        tl_server_free(&server);
        return NULL;
    }
    return server;
}

void tl_server_quiesce(struct tl_server *server)
{
    if (server == NULL)
        return;
    if (!server->host.closing)
        (void)MHD_quiesce_daemon(server->daemon); /* the descriptor it returns stays the caller's */
    server->host.closing = true;
}

struct tl_server_counts tl_server_counts(const struct tl_server *server)
{
    if (server == NULL)
        return (struct tl_server_counts){0};
    return (struct tl_server_counts){.connections = server->open,
                                     .busy = server->open - server->idle.n,
                                     .requests = server->host.requests,
                                     .accepted = server->accepted,
                                     .unavailable = server->host.unavailable};
}

void tl_server_free(struct tl_server **server_in)
{
    struct tl_server *server = *server_in;
    *server_in = NULL;
    if (server == NULL)
        return;
    tl_server_quiesce(server); /* otherwise stopping would close the caller's listening socket */
    uv_poll_stop(&server->poll);
    MHD_stop_daemon(server->daemon);
    uv_handle_t *handles[] = {(uv_handle_t *)&server->turn, (uv_handle_t *)&server->host.busy,
                              (uv_handle_t *)&server->timer, (uv_handle_t *)&server->poll};
    if (server->open_handles == 0) {
        free_server(server);
        return;
    }
    for (size_t i = 0; i < sizeof(handles) / sizeof(handles[0]); i++) {
        uv_handle_set_data(handles[i], server);
        uv_close(handles[i], on_closed);
    }
}
