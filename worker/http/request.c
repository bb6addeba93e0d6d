#include <assert.h>
#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker/http/request_host.h"

/* This much of a body that is too large is read and dropped, so that the client can read why. */
enum { DROPPED_MAX = 1024 * 1024, ID_MAX = 64 };

struct tl_request {
    struct tl_request_host *host;
    struct MHD_Connection *connection;
    const struct tl_renderer *renderer;
    const char *method, *path;
    char *body;
    size_t body_length, body_capacity;
    size_t dropped; /* bytes of a too large body */
    bool too_large, complete, held, answered;
    struct MHD_Response *response; /* of an answer that is not delivered yet */
    unsigned status;
    char id[ID_MAX + 1];
};

/* splitmix64 (G. Steele et al., 2014): ids need to differ, not to be secret. */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9E3779B97F4A7C15));
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

static bool is_valid_id(const char *id)
{
    size_t n = 0;
    for (; id[n] != '\0'; n++) {
        if (n == ID_MAX || (!isalnum((unsigned char)id[n]) && strchr("._-", id[n]) == NULL))
            return false;
    }
    return n > 0;
}

static void make_id(struct tl_request *request)
{
    static const char digits[] = "0123456789abcdef";
    const char *given = tl_request_header(request, "X-Request-Id");
    if (given != NULL && is_valid_id(given)) {
        memcpy(request->id, given, strlen(given) + 1);
        return;
    }
    uint64_t number = next_random(&request->host->id_random);
    for (size_t i = 0; i < 16; i++, number >>= 4)
        request->id[i] = digits[number & 15];
    request->id[16] = '\0';
}

struct tl_request *tl_request_new(struct tl_request_host *host, struct MHD_Connection *connection,
                                  const char *method, const char *path)
{
    struct tl_request *request = calloc(1, sizeof(*request));
    if (request == NULL)
        return NULL;
    request->host = host;
    request->connection = connection;
    request->method = method;
    request->path = path;
    make_id(request);
    host->requests++;
    return request;
}

void tl_request_free(struct tl_request *request)
{
    if (request->response != NULL)
        MHD_destroy_response(request->response);
    request->host->requests--;
    free(request->body);
    free(request);
}

struct MHD_Connection *tl_request_connection(const struct tl_request *request)
{
    return request->connection;
}

bool tl_request_add_body(struct tl_request *request, const char *bytes, size_t n)
{
    if (request->too_large || n > request->host->max_body - request->body_length) {
        request->too_large = true;
        request->dropped += n;
        return request->dropped <= DROPPED_MAX;
    }
    if (request->body_length + n + 1 > request->body_capacity) {
        size_t capacity = 2 * (request->body_length + n + 1);
        char *body = realloc(request->body, capacity);
        if (body == NULL)
            return false;
        request->body = body;
        request->body_capacity = capacity;
    }
    memcpy(request->body + request->body_length, bytes, n);
    request->body_length += n;
    request->body[request->body_length] = '\0';
    return true;
}

bool tl_request_declares_too_much(struct tl_request *request)
{
    const char *declared = tl_request_header(request, "Content-Length");
    request->too_large = declared != NULL && strtoull(declared, NULL, 10) > request->host->max_body;
    return request->too_large;
}

bool tl_request_too_large(const struct tl_request *request)
{
    return request->too_large;
}

bool tl_request_complete(struct tl_request *request)
{
    bool was_complete = request->complete;
    request->complete = true;
    return was_complete;
}

bool tl_request_answered(const struct tl_request *request)
{
    return request->answered;
}

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

enum MHD_Result tl_request_deliver(struct tl_request *request)
{
    if (request->response == NULL)
        return MHD_NO; /* no memory for it, or the socket was taken over: the library lets go of the
                          connection */
    enum MHD_Result result =
        MHD_queue_response(request->connection, request->status, request->response);
    MHD_destroy_response(request->response);
    request->response = NULL;
    return result;
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
