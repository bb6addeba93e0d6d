#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <sodium.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "worker/http/request_host.h"
#include "worker/http/server.h"

/* Request line, headers and answer headers of one connection. */
enum { CONNECTION_MEMORY = 16 * 1024 };

/* One connection of the library. Those without a complete request are in the server's list, oldest
 * first. */
struct connection {
    struct connection *prev, *next;
    int fd;
    bool listed;
    int64_t since_ms; /* of the connection, or of the end of its last request */
};

struct tl_server {
    struct tl_request_host host; /* first: a host is its server */
    struct tl_server_settings settings;
    struct MHD_Daemon *daemon;
    uv_check_t turn;
    uv_idle_t busy;   /* active while there is more to do at once */
    uv_timer_t timer; /* the library's own time-outs */
    uv_poll_t poll;
    struct connection *first, *last; /* connections without a complete request */
    unsigned open_handles;
    bool due; /* the library has something to do */
};

static void on_busy(uv_idle_t *handle)
{
    (void)handle; /* an active idle handle keeps the loop from sleeping */
}

/* Makes sure that the library runs in this turn. */
static void kick(struct tl_server *server)
{
    server->due = true;
    uv_idle_start(&server->busy, on_busy); /* does nothing when it is active */
}

static void on_resumed(struct tl_request_host *host)
{
    kick((struct tl_server *)(void *)host);
}

/* ---- connections without a complete request ---- */

static void list(struct tl_server *server, struct connection *connection, int64_t now_ms)
{
    connection->since_ms = now_ms;
    connection->listed = true;
    connection->prev = server->last;
    connection->next = NULL;
    if (server->last != NULL)
        server->last->next = connection;
    else
        server->first = connection;
    server->last = connection;
}

static void unlist(struct tl_server *server, struct connection *connection)
{
    if (!connection->listed)
        return;
    connection->listed = false;
    if (connection->prev != NULL)
        connection->prev->next = connection->next;
    else
        server->first = connection->next;
    if (connection->next != NULL)
        connection->next->prev = connection->prev;
    else
        server->last = connection->prev;
}

static struct connection *connection_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info != NULL ? info->socket_context : NULL;
}

/* When out of memory, the connection is served but not watched. */
static void on_connection(void *closure, struct MHD_Connection *connection, void **context,
                          enum MHD_ConnectionNotificationCode code)
{
    struct tl_server *server = closure;
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        const union MHD_ConnectionInfo *info =
            MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
        struct connection *watched = info != NULL ? calloc(1, sizeof(*watched)) : NULL;
        *context = watched;
        if (watched == NULL)
            return;
        watched->fd = info->connect_fd;
        list(server, watched, tl_clock_ms());
        return;
    }
    struct connection *watched = *context;
    if (watched != NULL)
        unlist(server, watched);
    free(watched);
    *context = NULL;
}

void tl_server_expire(struct tl_server *server, int64_t now_ms)
{
    while (server != NULL && server->first != NULL &&
           now_ms - server->first->since_ms > server->settings.idle_timeout_ms) {
        struct connection *connection = server->first;
        unlist(server, connection);
        if (shutdown(connection->fd, SHUT_RDWR) == 0) /* the library notices and closes it */
            tl_debug("http: closed a connection that sent no complete request in time");
    }
}

/* ---- the library's callbacks ---- */

/* The request is complete: calls the handler and delivers the answer, unless it is held. */
static enum MHD_Result dispatch(struct tl_server *server, struct tl_request *request)
{
    const struct tl_server_settings *settings = &server->settings;
    struct connection *connection = connection_of(tl_request_connection(request));
    if (connection != NULL)
        unlist(server, connection);
    (void)tl_request_complete(request);
    if (tl_request_too_large(request))
        settings->too_large(settings->handler_context, request);
    else
        settings->handle(settings->handler_context, request);
    return tl_request_answered(request) ? tl_request_deliver(request) : MHD_YES;
}

/* Called when the headers are there, for each piece of the body, at its end, and again when a held
 * request was resumed. */
static enum MHD_Result on_request(void *closure, struct MHD_Connection *connection,
                                  const char *path, const char *method, const char *version,
                                  const char *upload, size_t *upload_size, void **context)
{
    (void)version;
    struct tl_server *server = closure;
    struct tl_request *request = *context;
    if (request == NULL) {
        request = tl_request_new(&server->host, connection, method, path);
        *context = request;
        if (request == NULL)
            return MHD_NO;
        return tl_request_declares_too_much(request) ? dispatch(server, request) : MHD_YES;
    }
    if (*upload_size > 0) {
        bool ok = tl_request_add_body(request, upload, *upload_size);
        *upload_size = 0;
        return ok ? MHD_YES : MHD_NO;
    }
    return tl_request_complete(request) ? tl_request_deliver(request) : dispatch(server, request);
}

static void on_completed(void *closure, struct MHD_Connection *connection, void **context,
                         enum MHD_RequestTerminationCode code)
{
    struct tl_server *server = closure;
    struct connection *watched = connection_of(connection);
    (void)code;
    if (watched != NULL && !watched->listed)
        list(server, watched, tl_clock_ms());
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
    kick(timer->data);
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    (void)status;
    (void)events;
    kick(poll->data);
}

/* Arranges that the loop wakes up when the library must run again. */
static void arm(struct tl_server *server)
{
    MHD_UNSIGNED_LONG_LONG timeout_ms = 0;
    bool wanted = MHD_get_timeout(server->daemon, &timeout_ms) == MHD_YES;
    if (wanted && timeout_ms == 0)
        server->due = true;
    if (server->due) {
        kick(server);
        return;
    }
    uv_idle_stop(&server->busy);
    if (!wanted)
        uv_timer_stop(&server->timer);
    else if (!uv_is_active((uv_handle_t *)&server->timer) ||
             uv_timer_get_due_in(&server->timer) > timeout_ms)
        uv_timer_start(&server->timer, on_timer, timeout_ms, 0);
}

static void on_turn(uv_check_t *turn)
{
    struct tl_server *server = turn->data;
    if (server->due) {
        server->due = false;
        MHD_run(server->daemon);
    }
    server->settings.turn_end(server->settings.context);
    arm(server);
}

/* ---- life ---- */

static struct MHD_Daemon *start_daemon(struct tl_server *server)
{
    const struct tl_server_settings *settings = &server->settings;
    unsigned idle_s = (unsigned)((settings->idle_timeout_ms + 999) / 1000);
    /* MHD_USE_TURBO skips only checks that an edge-triggered loop does not need. */
    unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_TURBO | MHD_USE_ERROR_LOG;
    return MHD_start_daemon(
        flags, 0, NULL, NULL, on_request, server, MHD_OPTION_EXTERNAL_LOGGER, on_log, server,
        MHD_OPTION_LISTEN_SOCKET, settings->listen_fd, MHD_OPTION_NOTIFY_COMPLETED, on_completed,
        server, MHD_OPTION_NOTIFY_CONNECTION, on_connection, server, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)settings->max_connections, MHD_OPTION_CONNECTION_TIMEOUT, idle_s,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_MEMORY, MHD_OPTION_END);
}

static bool start_handles(struct tl_server *server, uv_loop_t *loop)
{
    const union MHD_DaemonInfo *info =
        MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    if (info == NULL || uv_poll_init(loop, &server->poll, info->epoll_fd) != 0)
        return false;
    uv_check_init(loop, &server->turn); /* these three cannot fail */
    uv_idle_init(loop, &server->busy);
    uv_timer_init(loop, &server->timer);
    server->open_handles = 4;
    server->poll.data = server->turn.data = server->timer.data = server;
    uv_check_start(&server->turn, on_turn);
    return uv_poll_start(&server->poll, UV_READABLE, on_readable) == 0;
}

static void on_closed(uv_handle_t *handle)
{
    struct tl_server *server = uv_handle_get_data(handle);
    if (--server->open_handles == 0)
        free(server);
}

static void close_handles(struct tl_server *server)
{
    uv_handle_t *handles[] = {(uv_handle_t *)&server->turn, (uv_handle_t *)&server->busy,
                              (uv_handle_t *)&server->timer, (uv_handle_t *)&server->poll};
    if (server->open_handles == 0) {
        free(server);
        return;
    }
    for (size_t i = 0; i < sizeof(handles) / sizeof(handles[0]); i++) {
        uv_handle_set_data(handles[i], server);
        uv_close(handles[i], on_closed);
    }
}

struct tl_server *tl_server_new(uv_loop_t *loop, const struct tl_server_settings *settings,
                                struct tl_error *err)
{
    struct tl_server *server = calloc(1, sizeof(*server));
    if (server == NULL) {
        tl_error_set(err, TL_ERR_NOMEM, "no memory for the HTTP server");
        return NULL;
    }
    server->settings = *settings;
    server->host = (struct tl_request_host){.handler_context = settings->handler_context,
                                            .context = settings->context,
                                            .max_body = settings->max_body,
                                            .answered = settings->answered,
                                            .resumed = on_resumed};
    randombytes_buf(&server->host.id_random, sizeof(server->host.id_random));
    server->daemon = start_daemon(server);
    if (server->daemon == NULL) {
        tl_error_set(err, TL_ERR_SYSTEM, "the HTTP server cannot be started");
        free(server);
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

uint64_t tl_server_connections(const struct tl_server *server)
{
    const union MHD_DaemonInfo *info = NULL;
    if (server != NULL)
        info = MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_CURRENT_CONNECTIONS);
    return info != NULL ? info->num_connections : 0;
}

uint64_t tl_server_requests(const struct tl_server *server)
{
    return server != NULL ? server->host.requests : 0;
}

void tl_server_free(struct tl_server **server)
{
    if (*server == NULL)
        return;
    tl_server_quiesce(*server); /* otherwise stopping would close the caller's listening socket */
    uv_poll_stop(&(*server)->poll);
    MHD_stop_daemon((*server)->daemon);
    close_handles(*server);
    *server = NULL;
}
