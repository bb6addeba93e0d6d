#include <assert.h>
#include <fcntl.h>

#include "worker/http/request.h"
#include "worker/http/request_data.h"

/* ---- reading ---- */

const char *tl_request_method(const struct tl_request *request)
{
    return request->method;
}

const char *tl_request_path(const struct tl_request *request)
{
    return request->path;
}

const char *tl_request_header(const struct tl_request *request, const char *name)
{
    return MHD_lookup_connection_value(request->connection, MHD_HEADER_KIND, name);
}

const char *tl_request_cookie(const struct tl_request *request, const char *name)
{
    return MHD_lookup_connection_value(request->connection, MHD_COOKIE_KIND, name);
}

const char *tl_request_query(const struct tl_request *request, const char *name)
{
    return MHD_lookup_connection_value(request->connection, MHD_GET_ARGUMENT_KIND, name);
}

const char *tl_request_body(const struct tl_request *request, size_t *length)
{
    *length = request->body_length;
    return request->body != NULL ? request->body : "";
}

const char *tl_request_id(const struct tl_request *request)
{
    return request->id;
}

bool tl_request_peer(const struct tl_request *request, struct tl_address *address)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(request->connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    return info != NULL && info->client_addr != NULL && tl_address_from(info->client_addr, address);
}

void *tl_request_context(const struct tl_request *request)
{
    return request->host->handler_context;
}

void tl_request_set_renderer(struct tl_request *request, const struct tl_renderer *renderer)
{
    request->renderer = renderer;
}

const struct tl_renderer *tl_request_renderer(const struct tl_request *request)
{
    return request->renderer;
}

/* ---- answering ---- */

void tl_request_hold(struct tl_request *request)
{
    if (request->held)
        return; /* suspending twice would break the library's lists */
    request->held = true;
    MHD_suspend_connection(request->connection);
}

static bool add_header(struct MHD_Response *response, const char *name, const char *value)
{
    return MHD_add_response_header(response, name, value) == MHD_YES;
}

static struct MHD_Response *make_response(const struct tl_request *request,
                                          const struct tl_answer *answer)
{
    /* The library's signature is not const, but MUST_COPY only reads. */
    struct MHD_Response *response = MHD_create_response_from_buffer(
        answer->length, (void *)(uintptr_t)answer->body,
        answer->length > 0 ? MHD_RESPMEM_MUST_COPY : MHD_RESPMEM_PERSISTENT);
    if (response == NULL)
        return NULL;
    bool ok =
        add_header(response, "Cache-Control", answer->cache != NULL ? answer->cache : "no-store") &&
        add_header(response, "X-Request-Id", request->id);
    if (ok && answer->type != NULL)
        ok = add_header(response, "Content-Type", answer->type);
    for (size_t i = 0; ok && i < answer->n_headers; i++)
        ok = add_header(response, answer->headers[i].name, answer->headers[i].value);
    if (ok && request->host->closing)
        ok = add_header(response, "Connection", "close");
    if (ok)
        return response;
    MHD_destroy_response(response);
    return NULL;
}

void tl_answer_header(struct tl_answer *answer, const char *name, const char *value)
{
    if (value != NULL && answer->n_headers < TL_ANSWER_HEADERS_MAX)
        answer->headers[answer->n_headers++] = (struct tl_header){name, value};
}

/* Wakes the connection of a request that was held. */
static void resume(struct tl_request *request)
{
    if (!request->held)
        return; /* the server delivers as soon as the handler returns */
    request->held = false;
    MHD_resume_connection(request->connection);
    request->host->resumed(request->host);
}

void tl_request_answer(struct tl_request *request, const struct tl_answer *answer)
{
    struct tl_request_host *host = request->host;
    assert(!request->answered);
    request->answered = true;
    request->status = answer->status;
    request->response = make_response(request, answer);
    host->answered(host->context, answer->status);
    resume(request);
}

/* The library closes its descriptor, and with MHD_USE_TURBO does not shut the socket down first:
 * the duplicate stays usable. (MHD_connection_mark_closed_ in libmicrohttpd 0.9.75 and 1.0; a test
 * of the event streams fails if that changes.) */
int tl_request_take_over(struct tl_request *request)
{
    struct tl_request_host *host = request->host;
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(request->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    assert(!request->answered);
    request->answered = true;
    host->answered(host->context, 200);
    int fd = info != NULL ? fcntl(info->connect_fd, F_DUPFD_CLOEXEC, 0) : -1;
    resume(request);
    return fd;
}
