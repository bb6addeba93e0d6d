/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <strings.h>

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

struct lines {
    const char *name;
    const char **values;
    size_t n, most;
};

static enum MHD_Result add_line(void *context, enum MHD_ValueKind kind, const char *name,
                                const char *value)
{
    struct lines *lines = context;
    (void)kind;
    if (strcasecmp(name, lines->name) != 0 || value == NULL)
        return MHD_YES;
    if (lines->n == lines->most)
        memmove(lines->values, lines->values + 1, --lines->n * sizeof(*lines->values));
    lines->values[lines->n++] = value;
    return MHD_YES;
}

size_t tl_request_headers(const struct tl_request *request, const char *name, const char **values,
                          size_t most)
{
    struct lines lines = {.name = name, .values = values, .most = most};
    (void)MHD_get_connection_values(request->connection, MHD_HEADER_KIND, add_line, &lines);
    return lines.n;
}

const char *tl_request_cookie(const struct tl_request *request, const char *name)
{
    return MHD_lookup_connection_value(request->connection, MHD_COOKIE_KIND, name);
}

struct cookie_search {
    const char *name;
    bool (*accept)(void *context, const char *value);
    void *context;
    bool accepted;
};

static enum MHD_Result try_cookie(void *cls, enum MHD_ValueKind kind, const char *name,
                                  const char *value)
{
    struct cookie_search *search = cls;
    (void)kind;
    search->accepted =
        value != NULL && strcmp(name, search->name) == 0 && search->accept(search->context, value);
    return search->accepted ? MHD_NO : MHD_YES;
}

bool tl_request_accept_cookie(const struct tl_request *request, const char *name,
                              bool (*accept)(void *context, const char *value), void *context)
{
    struct cookie_search search = {.name = name, .accept = accept, .context = context};
    MHD_get_connection_values(request->connection, MHD_COOKIE_KIND, try_cookie, &search);
    return search.accepted;
}

const char *tl_request_query(const struct tl_request *request, const char *name)
{
    return MHD_lookup_connection_value(request->connection, MHD_GET_ARGUMENT_KIND, name);
}

struct query_visit {
    void (*visit)(void *context, const char *name, const char *value);
    void *context;
};

static enum MHD_Result visit_query(void *cls, enum MHD_ValueKind kind, const char *name,
                                   const char *value)
{
    const struct query_visit *visit = cls;
    (void)kind;
    visit->visit(visit->context, name, value);
    return MHD_YES;
}

void tl_request_each_query(const struct tl_request *request,
                           void (*visit)(void *context, const char *name, const char *value),
                           void *context)
{
    struct query_visit cls = {.visit = visit, .context = context};
    MHD_get_connection_values(request->connection, MHD_GET_ARGUMENT_KIND, visit_query, &cls);
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

void tl_request_share_with(struct tl_request *request, const char *origin)
{
    request->by_origin = true;
    request->shared_origin = origin;
}

/* ---- answering ---- */

size_t tl_request_share_headers(const struct tl_request *request,
                                struct tl_header headers[TL_SHARE_HEADERS_MAX])
{
    size_t n = 0;
    if (request->by_origin)
        headers[n++] = (struct tl_header){"Vary", "Origin"};
    if (request->shared_origin == NULL)
        return n;
    headers[n++] = (struct tl_header){"Access-Control-Allow-Origin", request->shared_origin};
    headers[n++] = (struct tl_header){"Access-Control-Allow-Credentials", "true"};
    headers[n++] =
        (struct tl_header){"Access-Control-Expose-Headers", "Date, Retry-After, X-Request-Id"};
    return n;
}

void tl_request_hold(struct tl_request *request)
{
    if (request->held)
        return; /* suspending twice would break the library's lists */
    request->held = true;
    MHD_suspend_connection(request->connection);
}

bool tl_request_gone(const struct tl_request *request)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(request->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    struct pollfd peer = {.fd = info != NULL ? info->connect_fd : -1, .events = POLLRDHUP};
    return info != NULL && poll(&peer, 1, 0) > 0;
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
    struct tl_header shared[TL_SHARE_HEADERS_MAX];
    size_t n_shared = tl_request_share_headers(request, shared);
    bool ok =
        add_header(response, "Cache-Control", answer->cache != NULL ? answer->cache : "no-store") &&
        add_header(response, "X-Request-Id", request->id);
    if (ok && answer->type != NULL)
        ok = add_header(response, "Content-Type", answer->type);
    for (size_t i = 0; ok && i < answer->n_headers; i++)
        ok = add_header(response, answer->headers[i].name, answer->headers[i].value);
    for (size_t i = 0; ok && i < n_shared; i++)
        ok = add_header(response, shared[i].name, shared[i].value);
    if (ok && (request->host->closing || request->last))
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
