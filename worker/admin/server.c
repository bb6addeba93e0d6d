/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/net.h"
#include "worker/admin/answer.h"
#include "worker/admin/server.h"
#include "worker/http/request.h"

/* Connections that may be busy at once; see common/role/admin.c for the others. */
enum { PLACES = TL_ADMIN_EVENTS_MAX + TL_ADMIN_EXPORTS_MAX + TL_ADMIN_CALLS_MAX };

struct tl_admin_server {
    const struct tl_config *config;
    bool secure; /* browsers come by https */
    struct tl_networks *proxies;
    struct tl_admin_backends *backends;
    struct tl_admin_call_env env;
    struct tl_admin *admin;
};

/* ---- requests ---- */

static bool respond(struct tl_admin_call *call, struct tl_admin *admin)
{
    if (call->stream == NULL)
        tl_admin_busy(admin, call->connection, false);
    return tl_admin_answer_call(call, call->server->secure);
}

/* What needs the store: who asks, and then the call, which takes its body first if it has one. */
static bool work(struct tl_admin_call *call, struct tl_admin *admin, bool authorised)
{
    struct tl_admin_server *server = call->server;
    tl_admin_busy(admin, call->connection, true);
    struct tl_control *control = tl_admin_backend_borrow(server->backends, &call->answer);
    if (control == NULL)
        return respond(call, admin);
    bool may = authorised || tl_admin_call_authorise(call, &server->env, control);
    bool later = may && !authorised && tl_admin_call_takes_body(call);
    if (may && !later)
        tl_admin_call_perform(call, &server->env, control);
    tl_admin_backend_return(server->backends, control);
    if (!later)
        return respond(call, admin);
    tl_admin_busy(admin, call->connection, false);
    return true;
}

/* The page about a problem type, if the path is that of one. */
static bool write_problem(const char *path, size_t length, struct tl_text *page)
{
    char name[64];
    const size_t before = sizeof(TL_REFUSAL_PATH) - 1;
    if (length < before || strncmp(path, TL_REFUSAL_PATH, before) != 0)
        return false;
    snprintf(name, sizeof(name), "%.*s", (int)(length - before), path + before);
    return tl_refusal_page(name, page) && !page->failed;
}

static bool serve_file(struct tl_admin_call *call, struct tl_admin *admin, const char *method)
{
    struct tl_admin_previews *previews = call->server->env.previews;
    size_t length = tl_admin_head_path(&call->head);
    struct tl_text text = {0};
    struct tl_asset problem = {.type = "text/plain; charset=utf-8"};
    enum tl_admin_file_kind kind = TL_ADMIN_FILE_DASHBOARD;
    bool served = false, sent = false;
    const struct tl_asset *file = tl_admin_file_find(call->text, length);
    const struct tl_asset *shown = tl_admin_previews_borrow(previews, call->text, length);
    if (file == NULL) {
        kind = TL_ADMIN_FILE_SHOWN;
        file = shown;
    }
    if (file == NULL && write_problem(call->text, length, &text)) {
        problem.bytes = text.data;
        problem.length = text.length;
        kind = TL_ADMIN_FILE_TEXT;
        file = &problem;
    }
    if (file == NULL) {
        tl_control_problem(&call->answer, TL_REFUSAL_NOT_FOUND, "There is no such page");
    } else if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0) {
        tl_control_problem(&call->answer, TL_REFUSAL_METHOD, "This path takes GET");
        memcpy(call->answer.allow, "GET", sizeof("GET"));
    } else if (tl_admin_access_browser(call->server->env.access, &call->head, &call->answer)) {
        served = true;
        sent = tl_admin_answer_file(call->connection, file, kind);
    }
    tl_admin_previews_return(previews);
    tl_text_free(&text);
    return served ? sent : respond(call, admin);
}

static bool start(struct tl_admin_call *call, struct tl_admin *admin, const char *method,
                  const char *version)
{
    const struct tl_admin_server *server = call->server;
    const char *problem = tl_framing_problem(call->connection, method, version);
    tl_admin_head_read(&call->head, call->connection, method, call->text, server->secure,
                       server->proxies);
    if (problem != NULL) {
        tl_control_problem(&call->answer, TL_REFUSAL_BAD_REQUEST, "%s", problem);
        return respond(call, admin);
    }
    if (strncmp(call->text, "/v1/", 4) != 0 &&
        strncmp(call->text, TL_ADMIN_PREVIEWS, sizeof(TL_ADMIN_PREVIEWS) - 1) != 0)
        return serve_file(call, admin, method);
    return tl_admin_call_find(call) ? work(call, admin, false) : respond(call, admin);
}

static bool handle(void *context, struct tl_admin *admin, void *memory,
                   struct MHD_Connection *connection, const char *method, const char *version,
                   const char *upload, size_t *upload_size)
{
    struct tl_admin_call *call = memory;
    (void)context;
    if (call == NULL)
        return false; /* out of memory */
    if (!call->begun) {
        call->begun = true;
        call->connection = connection;
        return start(call, admin, method, version);
    }
    if (*upload_size > 0) {
        bool ok = tl_admin_call_receive(call, upload, *upload_size);
        *upload_size = 0;
        return ok;
    }
    return work(call, admin, true);
}

static void *begin(void *context, const char *target)
{
    struct tl_admin_call *call = tl_admin_call_new(target);
    if (call != NULL)
        call->server = context;
    return call;
}

static void end(void *context, void *memory)
{
    struct tl_admin_call *call = memory;
    (void)context;
    tl_admin_call_free(&call);
}

/* ---- life ---- */

static bool open_parts(struct tl_admin_server *server,
                       const struct tl_admin_server_settings *settings, struct tl_error *err)
{
    const struct tl_config *config = server->config;
    struct tl_admin_call_env *env = &server->env;
    env->config = config;
    return (server->proxies = tl_networks_parse(config->admin.trusted_proxies, err)) != NULL &&
           (server->backends = tl_admin_backends_new(config, err)) != NULL &&
           (env->access = tl_admin_access_new(config, settings->limiter, err)) != NULL &&
           (env->reports = tl_admin_reports_new(config, err)) != NULL &&
           (env->previews =
                tl_admin_previews_new(config, settings->brand, settings->events, err)) != NULL &&
           (env->streams = tl_admin_streams_new(config, env->access, server->backends, err)) !=
               NULL;
}

struct tl_admin_server *tl_admin_server_start(const struct tl_admin_server_settings *settings,
                                              struct tl_error *err)
{
    struct tl_admin_server *server = calloc(1, sizeof(*server));
    if (server == NULL) {
        tl_error_set(err, TL_ERR_NOMEM, "no memory for the admin listener");
        return NULL;
    }
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
    if (server->env.streams != NULL) { /* the last part */
        tl_admin_streams_end(server->env.streams);
        tl_admin_backends_close(server->backends);
    }
    tl_admin_stop(&server->admin);
    tl_admin_streams_free(&server->env.streams);
    tl_admin_previews_free(&server->env.previews);
    tl_admin_reports_free(&server->env.reports);
    tl_admin_access_free(&server->env.access);
    tl_admin_backends_free(&server->backends);
    tl_networks_free(&server->proxies);
    free(server);
    *server_in = NULL;
}
