/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/net.h"
#include "worker/admin/answer.h"
#include "worker/admin/server.h"
#include "worker/http/request.h"

enum {
    THREADS = 4,
    WAITING_MAX = 32, /* requests that wait for a thread */
    /* Connections that may be busy at once; see common/role/admin.c for the others. */
    PLACES = TL_ADMIN_EVENTS_STREAMS_MAX + TL_ADMIN_EXPORTS_MAX + WAITING_MAX + THREADS,
};

struct tl_admin_server {
    const struct tl_config *config;
    bool secure; /* browsers come by https */
    struct tl_networks *proxies;
    struct tl_admin_backend *backends[THREADS];
    struct tl_admin_pool *pool;
    struct tl_admin_call_env env;
    struct tl_admin *admin;
    pthread_mutex_t mutex; /* for what follows */
    pthread_cond_t idle;
    unsigned suspended; /* requests that a thread works on, or that wait for one */
    bool stopping;
};

enum step {
    STEP_NEW,
    STEP_ASKED,   /* suspended: who is the caller? Without a body, the call is done, too */
    STEP_BODY,    /* the body is received */
    STEP_WORKING, /* suspended: the call is done */
};

struct request {
    struct tl_admin_pool_job job;
    struct tl_admin_call *call;
    struct tl_admin_server *server;
    struct MHD_Connection *connection;
    enum step step;
};

/* ---- on a thread of the pool ---- */

static bool is_stopping(struct tl_admin_server *server)
{
    pthread_mutex_lock(&server->mutex);
    bool stopping = server->stopping;
    pthread_mutex_unlock(&server->mutex);
    return stopping;
}

static void run_request(struct tl_admin_pool_job *job, void *thread_context)
{
    const struct request *request = (const struct request *)(const void *)job;
    struct tl_admin_server *server = request->server;
    struct tl_admin_call *call = request->call;
    bool has_body = tl_admin_call_takes_body(call);
    if (is_stopping(server))
        tl_control_problem(&call->answer, 503, "This process is shutting down");
    else if (request->step == STEP_WORKING ||
             (tl_admin_call_authorise(call, &server->env, thread_context) && !has_body))
        tl_admin_call_perform(call, &server->env, thread_context);
    struct MHD_Connection *connection = request->connection;
    /* From here on the request belongs to the listener's thread again. */
    pthread_mutex_lock(&server->mutex);
    MHD_resume_connection(connection);
    if (--server->suspended == 0)
        pthread_cond_broadcast(&server->idle);
    pthread_mutex_unlock(&server->mutex);
}

/* ---- on the listener's thread ---- */

/* Hands the request to the pool; false: it is answered instead. */
static bool hand_over(struct request *request, struct tl_admin *admin, enum step step)
{
    struct tl_admin_server *server = request->server;
    request->step = step;
    pthread_mutex_lock(&server->mutex);
    bool open = !server->stopping;
    /* Suspended first: a thread may be done before this one goes on. */
    if (open) {
        MHD_suspend_connection(request->connection);
        if (tl_admin_pool_offer(server->pool, &request->job)) {
            server->suspended++;
        } else {
            MHD_resume_connection(request->connection);
            tl_control_problem(&request->call->answer, 503, "Too many requests are in work");
        }
    } else {
        tl_control_problem(&request->call->answer, 503, "This process is shutting down");
    }
    pthread_mutex_unlock(&server->mutex);
    if (open)
        tl_admin_busy(admin, request->connection, true);
    return open;
}

static bool respond(const struct request *request, struct tl_admin *admin)
{
    tl_admin_busy(admin, request->connection, request->call->stream != NULL);
    return tl_admin_answer_call(request->connection, request->call, request->server->secure);
}

static bool serve_file(const struct request *request, struct tl_admin *admin, const char *method)
{
    struct tl_admin_call *call = request->call;
    size_t length = tl_admin_head_path(&call->head);
    const struct tl_admin_file *file = tl_admin_file_find(call->target, length);
    struct tl_admin_previews *previews = request->server->env.previews;
    const struct tl_asset *asset = tl_admin_previews_borrow(previews, call->target, length);
    bool responds = true;
    bool sent = false;
    if (file == NULL && asset == NULL) {
        tl_control_problem(&call->answer, 404, "There is no such page");
    } else if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0) {
        tl_control_problem(&call->answer, 405, "This path takes GET");
        memcpy(call->answer.allow, "GET", sizeof("GET"));
    } else if (tl_admin_access_browser(request->server->env.access, &call->head, &call->answer)) {
        responds = false;
        sent = file != NULL ? tl_admin_answer_file(request->connection, file)
                            : tl_admin_answer_asset(request->connection, asset);
    }
    tl_admin_previews_return(previews);
    return responds ? respond(request, admin) : sent;
}

static bool start(struct request *request, struct tl_admin *admin, const char *method,
                  const char *version)
{
    const struct tl_admin_server *server = request->server;
    struct tl_admin_call *call = request->call;
    const char *problem = tl_framing_problem(request->connection, method, version);
    tl_admin_head_read(&call->head, request->connection, method, call->target, server->secure,
                       server->proxies);
    if (problem != NULL) {
        tl_control_problem(&call->answer, 400, "%s", problem);
        return respond(request, admin);
    }
    if (strncmp(call->target, "/v1/", 4) != 0 &&
        strncmp(call->target, TL_ADMIN_PREVIEWS, sizeof(TL_ADMIN_PREVIEWS) - 1) != 0)
        return serve_file(request, admin, method);
    if (!tl_admin_call_find(call) || !hand_over(request, admin, STEP_ASKED))
        return respond(request, admin);
    return true;
}

static bool handle(void *context, struct tl_admin *admin, void *memory,
                   struct MHD_Connection *connection, const char *method, const char *version,
                   const char *upload, size_t *upload_size)
{
    struct request *request = memory;
    (void)context;
    if (request == NULL)
        return false; /* out of memory */
    request->connection = connection;
    if (request->step == STEP_NEW)
        return start(request, admin, method, version);
    if (request->call->answer.status != 0 || request->call->stream != NULL)
        return respond(request, admin);
    if (request->step == STEP_ASKED) { /* the caller may do it: let the body come */
        request->step = STEP_BODY;
        tl_admin_busy(admin, connection, false);
        return true;
    }
    if (*upload_size > 0) {
        bool ok = tl_admin_call_receive(request->call, upload, *upload_size);
        *upload_size = 0;
        return ok;
    }
    return hand_over(request, admin, STEP_WORKING) || respond(request, admin);
}

static void *begin(void *context, const char *target)
{
    struct request *request = calloc(1, sizeof(*request));
    if (request == NULL)
        return NULL;
    request->job.run = run_request;
    request->server = context;
    request->call = tl_admin_call_new(target);
    if (request->call != NULL)
        return request;
    free(request);
    return NULL;
}

static void end(void *context, void *memory)
{
    struct request *request = memory;
    (void)context;
    tl_admin_call_free(&request->call);
    free(request);
}

/* ---- life ---- */

static bool open_parts(struct tl_admin_server *server,
                       const struct tl_admin_server_settings *settings, struct tl_error *err)
{
    const struct tl_admin_access_settings access = {.config = server->config,
                                                    .limiter = settings->limiter};
    void *contexts[THREADS];
    server->proxies = tl_networks_parse(server->config->admin.trusted_proxies, err);
    if (server->proxies == NULL)
        return false;
    for (size_t i = 0; i < THREADS; i++) {
        server->backends[i] = tl_admin_backend_new(server->config, err);
        contexts[i] = server->backends[i];
        if (contexts[i] == NULL)
            return false;
    }
    server->env.config = server->config;
    return (server->env.access = tl_admin_access_new(&access, err)) != NULL &&
           (server->pool = tl_admin_pool_new(contexts, THREADS, WAITING_MAX, err)) != NULL &&
           (server->env.events = tl_admin_events_new(server->env.access, server->pool, err)) !=
               NULL &&
           (server->env.previews = tl_admin_previews_new(server->config, settings->brand,
                                                         settings->events, err)) != NULL &&
           (server->env.exports = tl_admin_exports_new(server->config, server->pool, err)) != NULL;
}

struct tl_admin_server *tl_admin_server_start(const struct tl_admin_server_settings *settings,
                                              struct tl_error *err)
{
    struct tl_admin_server *server = calloc(1, sizeof(*server));
    if (server == NULL) {
        tl_error_set(err, TL_ERR_NOMEM, "no memory for the admin listener");
        return NULL;
    }
    pthread_mutex_init(&server->mutex, NULL);
    pthread_cond_init(&server->idle, NULL);
    server->config = settings->config;
    server->secure = settings->config->admin.tls == TL_ADMIN_TLS_TERMINATED;
    /* Without a secret of operators there is nothing that anybody could prove to be one. */
    const struct tl_config *config = settings->config;
    bool has_operators =
        config->secrets.admin_token[0] != '\0' || config->secrets.token_key[0] != '\0';
    const struct tl_admin_calls calls = {
        .context = server, .places = PLACES, .begin = begin, .handle = handle, .end = end};
    if ((has_operators && !open_parts(server, settings, err)) ||
        !tl_admin_start(&server->admin, &config->admin.worker, &settings->source,
                        has_operators ? &calls : NULL, err))
        tl_admin_server_stop(&server);
    return server;
}

bool tl_admin_server_reload(struct tl_admin_server *server, const struct tl_config *config,
                            struct tl_error *err)
{
    return server->env.previews == NULL ||
           tl_admin_previews_reload(server->env.previews, config, err);
}

void tl_admin_server_stop(struct tl_admin_server **server_in)
{
    struct tl_admin_server *server = *server_in;
    if (server == NULL)
        return;
    pthread_mutex_lock(&server->mutex);
    server->stopping = true;
    while (server->suspended > 0)
        pthread_cond_wait(&server->idle, &server->mutex);
    pthread_mutex_unlock(&server->mutex);
    if (server->env.events != NULL)
        tl_admin_events_end(server->env.events);
    if (server->env.exports != NULL)
        tl_admin_exports_end(server->env.exports);
    tl_admin_stop(&server->admin);
    tl_admin_pool_free(&server->pool);
    tl_admin_events_free(&server->env.events);
    tl_admin_exports_free(&server->env.exports);
    tl_admin_previews_free(&server->env.previews);
    for (size_t i = 0; i < THREADS; i++)
        tl_admin_backend_free(&server->backends[i]);
    tl_admin_access_free(&server->env.access);
    tl_networks_free(&server->proxies);
    pthread_cond_destroy(&server->idle);
    pthread_mutex_destroy(&server->mutex);
    free(server);
    *server_in = NULL;
}
