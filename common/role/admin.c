/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <microhttpd.h>

#include "common/base/clock.h"
#include "common/base/idle_sockets.h"
#include "common/base/log.h"
#include "common/base/net.h"
#include "common/base/text.h"
#include "common/role/admin.h"
#include "common/role/listen.h"

#if MHD_VERSION >= 0x00097002
#define MHD_RESULT enum MHD_Result
#else
#define MHD_RESULT int
#endif

/* Scrapers and probes need few connections. Above CONNECTIONS_MAX the oldest without a request is
 * closed; what cannot be closed in time is refused, and from loopback later than from elsewhere: a
 * liveness probe gets its answer, however many others hold connections. */
enum {
    CONNECTIONS_MAX = 48,
    OTHERS_LIMIT = 56,
    LOOPBACK_LIMIT = 64,
    REQUEST_MS = 5000, /* for one complete request; looked at when another connection comes */
    STOP_MS = 1000,    /* a stop waits this long for clients to take their answers */
};
#define IDLE_TIMEOUT_S 10u
/* Of a connection, for the head of a request. */
#define MEMORY_LIMIT       ((size_t)8 * 1024)
#define MEMORY_LIMIT_CALLS ((size_t)32 * 1024)
/* Of the thread of a connection, where there are calls: a body of JSON may nest 2048 deep. */
#define STACK ((size_t)1024 * 1024)

struct connection {
    struct tl_idle_socket idle; /* first: listed while it gives way to others */
    void *request;              /* the calls' one that has not ended; NULL: none */
};

struct tl_admin {
    struct MHD_Daemon *daemon;
    struct tl_admin_source source;
    struct tl_admin_calls calls; /* all zero: none */
    pthread_mutex_t mutex;       /* for what follows: the threads of all connections come here */
    unsigned open;               /* connections */
    struct tl_idle_sockets idle;
};

/* ---- connections ---- */

static MHD_RESULT on_accept(void *context, const struct sockaddr *socket, socklen_t length)
{
    struct tl_admin *admin = context;
    struct tl_address address;
    (void)length;
    bool loopback = tl_address_from(socket, &address) && tl_address_is_loopback(&address);
    unsigned limit = admin->calls.places + (loopback ? LOOPBACK_LIMIT : OTHERS_LIMIT);
    pthread_mutex_lock(&admin->mutex);
    bool room = admin->open < limit;
    pthread_mutex_unlock(&admin->mutex);
    return room ? MHD_YES : MHD_NO;
}

static struct connection *connection_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info != NULL ? info->socket_context : NULL;
}

/* The library does not say of each request that began that it is over (not of one whose query does
 * not fit): what is left ends with the connection. */
static void end_request(const struct tl_admin *admin, struct connection *watched)
{
    if (watched->request != NULL)
        admin->calls.end(admin->calls.context, watched->request);
    watched->request = NULL;
}

static void start_watch(struct tl_admin *admin, struct MHD_Connection *connection, void **context)
{
    int64_t now_ms = tl_clock_ms();
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    struct connection *watched = info != NULL ? calloc(1, sizeof(*watched)) : NULL;
    *context = watched;
    pthread_mutex_lock(&admin->mutex);
    (void)tl_idle_sockets_expire(&admin->idle, now_ms, REQUEST_MS);
    if (++admin->open - admin->idle.shut > admin->calls.places + CONNECTIONS_MAX)
        (void)tl_idle_sockets_shut_oldest(&admin->idle);
    if (watched != NULL) { /* else served but not watched, and without calls */
        watched->idle.fd = info->connect_fd;
        tl_idle_sockets_add(&admin->idle, &watched->idle, false, now_ms);
    }
    pthread_mutex_unlock(&admin->mutex);
}

static void on_connection(void *context, struct MHD_Connection *connection, void **socket_context,
                          enum MHD_ConnectionNotificationCode code)
{
    struct tl_admin *admin = context;
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        start_watch(admin, connection, socket_context);
        return;
    }
    struct connection *watched = *socket_context;
    *socket_context = NULL;
    if (watched != NULL)
        end_request(admin, watched);
    pthread_mutex_lock(&admin->mutex);
    admin->open--;
    if (watched != NULL)
        tl_idle_sockets_close(&admin->idle, &watched->idle);
    pthread_mutex_unlock(&admin->mutex);
    free(watched);
}

void tl_admin_busy(struct tl_admin *admin, struct MHD_Connection *connection, bool busy)
{
    struct connection *watched = connection_of(connection);
    if (watched == NULL)
        return;
    pthread_mutex_lock(&admin->mutex);
    tl_idle_sockets_remove(&admin->idle, &watched->idle);
    if (!busy)
        tl_idle_sockets_add(&admin->idle, &watched->idle, false, tl_clock_ms());
    pthread_mutex_unlock(&admin->mutex);
    /* The library would count the time of the work; from no limit to one it begins again. */
    if (admin->calls.handle != NULL)
        (void)MHD_set_connection_option(connection, MHD_CONNECTION_OPTION_TIMEOUT,
                                        busy ? 0u : IDLE_TIMEOUT_S);
}

/* The request is answered: from now on the connection is idle. */
static void on_completed(void *context, struct MHD_Connection *connection, void **request,
                         enum MHD_RequestTerminationCode code)
{
    struct tl_admin *admin = context;
    struct connection *watched = connection_of(connection);
    (void)code;
    if (watched != NULL)
        end_request(admin, watched);
    *request = NULL;
    tl_admin_busy(admin, connection, false);
}

/* The library knows the target as it was sent only here. */
static void *on_target(void *context, const char *target, struct MHD_Connection *connection)
{
    const struct tl_admin *admin = context;
    struct connection *watched = connection_of(connection);
    if (watched == NULL || admin->calls.begin == NULL)
        return NULL;
    end_request(admin, watched);
    watched->request = admin->calls.begin(admin->calls.context, target);
    return watched->request;
}

/* ---- answers ---- */

static MHD_RESULT answer(struct MHD_Connection *connection, unsigned status, const char *type,
                         const char *body, size_t length)
{
    struct MHD_Response *response =
        MHD_create_response_from_buffer(length, (void *)(uintptr_t)body, MHD_RESPMEM_MUST_COPY);
    if (response == NULL)
        return MHD_NO;
    MHD_RESULT ok = MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    if (ok == MHD_YES)
        ok = MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
    if (ok == MHD_YES)
        ok = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return ok;
}

static MHD_RESULT answer_line(struct MHD_Connection *connection, unsigned status, const char *line)
{
    return answer(connection, status, "text/plain; charset=utf-8", line, strlen(line));
}

static MHD_RESULT answer_metrics(const struct tl_admin *admin, struct MHD_Connection *connection)
{
    struct tl_text text = {0};
    admin->source.metrics(admin->source.context, &text);
    MHD_RESULT result;
    if (text.failed)
        result = answer_line(connection, MHD_HTTP_INTERNAL_SERVER_ERROR, "out of memory\n");
    else
        result = answer(connection, MHD_HTTP_OK, "text/plain; version=0.0.4; charset=utf-8",
                        text.data != NULL ? text.data : "", text.length);
    tl_text_free(&text);
    return result;
}

static MHD_RESULT answer_ready(const struct tl_admin *admin, struct MHD_Connection *connection)
{
    char reason[160] = "not ready";
    char line[170];
    bool ready = admin->source.ready(admin->source.context, reason);
    snprintf(line, sizeof(line), "%.159s\n", reason);
    return answer_line(connection, ready ? MHD_HTTP_OK : MHD_HTTP_SERVICE_UNAVAILABLE, line);
}

static MHD_RESULT handle(void *context, struct MHD_Connection *connection, const char *url,
                         const char *method, const char *version, const char *upload,
                         size_t *upload_size, void **request)
{
    struct tl_admin *admin = context;
    bool own = strcmp(url, "/livez") == 0 || strcmp(url, "/readyz") == 0 ||
               strcmp(url, "/metrics") == 0 || admin->calls.handle == NULL;
    if (!own)
        return admin->calls.handle(admin->calls.context, admin, *request, connection, method,
                                   version, upload, upload_size)
                   ? MHD_YES
                   : MHD_NO;
    if (*upload_size > 0) { /* ignore the body */
        *upload_size = 0;
        return MHD_YES;
    }
    if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
        return answer_line(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET\n");
    if (strcmp(url, "/livez") == 0)
        return admin->source.live(admin->source.context)
                   ? answer_line(connection, MHD_HTTP_OK, "alive\n")
                   : answer_line(connection, MHD_HTTP_SERVICE_UNAVAILABLE, "the loop is stuck\n");
    if (strcmp(url, "/readyz") == 0)
        return answer_ready(admin, connection);
    if (strcmp(url, "/metrics") == 0)
        return answer_metrics(admin, connection);
    return answer_line(connection, MHD_HTTP_NOT_FOUND, "here are /livez, /readyz and /metrics\n");
}

bool tl_admin_start(struct tl_admin **admin_out, const struct tl_listen *listen,
                    const struct tl_admin_source *source, const struct tl_admin_calls *calls,
                    struct tl_error *err)
{
    *admin_out = NULL;
    if (listen->port < 0)
        return true;
    struct tl_admin *admin = calloc(1, sizeof(*admin));
    if (admin == NULL)
        return tl_error_set(err, TL_ERR_NOMEM, "no memory for the admin listener");
    admin->source = *source;
    admin->calls = calls != NULL ? *calls : (struct tl_admin_calls){0};
    unsigned flags = MHD_USE_AUTO | MHD_USE_INTERNAL_POLLING_THREAD |
                     (calls != NULL ? MHD_USE_THREAD_PER_CONNECTION | MHD_USE_ITC : 0u);
    int port, fd = tl_listen_open(listen, false, &port, err);
    if (fd < 0) {
        free(admin);
        return tl_error_prefix(err, "admin listener");
    }
    pthread_mutex_init(&admin->mutex, NULL);
    /* The library's own limit is never reached: it would stop listening for all. */
    admin->daemon = MHD_start_daemon(
        flags, 0, on_accept, admin, handle, admin, MHD_OPTION_URI_LOG_CALLBACK, on_target, admin,
        MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_NOTIFY_CONNECTION, on_connection, admin,
        MHD_OPTION_NOTIFY_COMPLETED, on_completed, admin, MHD_OPTION_CONNECTION_LIMIT,
        admin->calls.places + 2u * LOOPBACK_LIMIT, MHD_OPTION_CONNECTION_TIMEOUT, IDLE_TIMEOUT_S,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, calls != NULL ? MEMORY_LIMIT_CALLS : MEMORY_LIMIT,
        MHD_OPTION_THREAD_STACK_SIZE, calls != NULL ? STACK : (size_t)0, MHD_OPTION_END);
    if (admin->daemon == NULL) {
        pthread_mutex_destroy(&admin->mutex);
        close(fd);
        free(admin);
        return tl_error_set(err, TL_ERR_SYSTEM, "the admin listener's thread could not be started");
    }
    tl_info("admin listener on %s:%d", listen->host, port);
    *admin_out = admin;
    return true;
}

/* Accepts no more connections, and lets those there are end: when what was asked is answered. The
 * library would break the answers off; and where it has to refuse a request itself while it stops,
 * libmicrohttpd 0.9.75 crashes. */
static void close_connections(struct tl_admin *admin)
{
    static const struct timespec pause = {.tv_nsec = 5000000};
    int64_t until_ms = tl_clock_ms() + STOP_MS;
    int fd = MHD_quiesce_daemon(admin->daemon);
    if (fd >= 0)
        close(fd);
    unsigned open = 1;
    while (open > 0 && tl_clock_ms() < until_ms) {
        pthread_mutex_lock(&admin->mutex);
        for (const struct tl_idle_socket *at = admin->idle.first; at != NULL; at = at->next)
            (void)shutdown(at->fd, SHUT_RD);
        open = admin->open;
        pthread_mutex_unlock(&admin->mutex);
        if (open > 0)
            (void)nanosleep(&pause, NULL);
    }
}

void tl_admin_stop(struct tl_admin **admin)
{
    if (*admin == NULL)
        return;
    if ((*admin)->calls.handle != NULL)
        close_connections(*admin);
    MHD_stop_daemon((*admin)->daemon);
    pthread_mutex_destroy(&(*admin)->mutex);
    free(*admin);
    *admin = NULL;
}
