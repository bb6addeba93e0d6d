#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <microhttpd.h>

#include "common/base/log.h"
#include "common/base/text.h"
#include "common/role/admin.h"
#include "common/role/listen.h"

#if MHD_VERSION >= 0x00097002
#define MHD_RESULT enum MHD_Result
#else
#define MHD_RESULT int
#endif

/* Scrapers and probes need few connections; more are refused. */
#define CONNECTIONS_MAX 64u
#define IDLE_TIMEOUT_S  10u
#define MEMORY_LIMIT    ((size_t)8 * 1024)

struct tl_admin {
    struct MHD_Daemon *daemon;
    struct tl_admin_source source;
    int port;
};

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
    if (admin->source.ready(admin->source.context, reason))
        return answer_line(connection, MHD_HTTP_OK, "ready\n");
    char line[170];
    size_t length = strnlen(reason, sizeof(reason) - 1);
    memcpy(line, reason, length);
    line[length] = '\n';
    line[length + 1] = '\0';
    return answer_line(connection, MHD_HTTP_SERVICE_UNAVAILABLE, line);
}

static MHD_RESULT handle(void *context, struct MHD_Connection *connection, const char *url,
                         const char *method, const char *version, const char *upload,
                         size_t *upload_size, void **request)
{
    const struct tl_admin *admin = context;
    (void)version;
    (void)upload;
    (void)request;
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
                    const struct tl_admin_source *source, struct tl_error *err)
{
    *admin_out = NULL;
    if (listen->port < 0)
        return true;
    struct tl_admin *admin = calloc(1, sizeof(*admin));
    if (admin == NULL)
        return tl_error_set(err, TL_ERR_NOMEM, "no memory for the admin listener");
    admin->source = *source;
    int fd = tl_listen_open(listen, false, &admin->port, err);
    if (fd < 0) {
        free(admin);
        return tl_error_prefix(err, "admin listener");
    }
    admin->daemon =
        MHD_start_daemon(MHD_USE_AUTO | MHD_USE_INTERNAL_POLLING_THREAD, 0, NULL, NULL, handle,
                         admin, MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT,
                         CONNECTIONS_MAX, MHD_OPTION_CONNECTION_TIMEOUT, IDLE_TIMEOUT_S,
                         MHD_OPTION_CONNECTION_MEMORY_LIMIT, MEMORY_LIMIT, MHD_OPTION_END);
    if (admin->daemon == NULL) {
        close(fd);
        free(admin);
        return tl_error_set(err, TL_ERR_SYSTEM, "the admin listener's thread could not be started");
    }
    tl_info("admin listener on %s:%d", listen->host, admin->port);
    *admin_out = admin;
    return true;
}

void tl_admin_stop(struct tl_admin **admin)
{
    if (*admin == NULL)
        return;
    MHD_stop_daemon((*admin)->daemon);
    free(*admin);
    *admin = NULL;
}

int tl_admin_port(const struct tl_admin *admin)
{
    return admin == NULL ? -1 : admin->port;
}
