#include <assert.h>
#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker/http/request.h"

/* Of a body that is too large this much is read and thrown away, so that the client gets to read
 * why. */
enum { DROPPED_MAX = 1024 * 1024 };

/* splitmix64 (G. Steele et al., 2014): ids need to differ, not to be secret. */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9E3779B97F4A7C15));
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

static bool is_sensible_id(const char *id)
{
    size_t n = 0;
    for (; id[n] != '\0'; n++) {
        if (n == TL_REQUEST_ID_MAX ||
            (!isalnum((unsigned char)id[n]) && strchr("._-", id[n]) == NULL))
            return false;
    }
    return n > 0;
}

static void make_id(struct tl_request *request)
{
    static const char digits[] = "0123456789abcdef";
    const char *given = tl_request_header(request, "X-Request-Id");
    if (given != NULL && is_sensible_id(given)) {
        memcpy(request->id, given, strlen(given) + 1);
        return;
    }
    uint64_t number = next_random(&request->server->random);
    for (size_t i = 0; i < 16; i++, number >>= 4)
        request->id[i] = digits[number & 15];
    request->id[16] = '\0';
}

struct tl_request *tl_request_new(struct tl_server *server, struct MHD_Connection *connection,
                                  const char *method, const char *path)
{
    struct tl_request *request = calloc(1, sizeof(*request));
    if (request == NULL)
        return NULL;
    request->server = server;
    request->connection = connection;
    request->method = method;
    request->path = path;
    make_id(request);
    server->requests++;
    return request;
}

void tl_request_free(struct tl_request *request)
{
    if (request->response != NULL)
        MHD_destroy_response(request->response);
    request->server->requests--;
    free(request->body);
    free(request);
}

bool tl_request_add_body(struct tl_request *request, const char *bytes, size_t n)
{
    if (request->too_large || n > request->server->settings.max_body - request->body_length) {
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
    return request->server->settings.context;
}

/* ---- answering ---- */

void tl_request_hold(struct tl_request *request)
{
    if (request->held)
        return; /* suspending twice would break the library's lists */
    request->held = true;
    MHD_suspend_connection(request->connection);
}

/* Adds a header; one that cannot be added (no memory) is worth no failed answer, except that it is
 * noticed. */
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
    if (ok && request->server->quiesced)
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

void tl_request_answer(struct tl_request *request, const struct tl_answer *answer)
{
    struct tl_server *server = request->server;
    assert(!request->answered);
    request->answered = true;
    request->status = answer->status;
    request->response = make_response(request, answer);
    server->settings.answered(server->settings.context, answer->status);
    if (!request->held)
        return; /* delivered by the server as soon as the handler returns */
    request->held = false;
    MHD_resume_connection(request->connection);
    tl_server_kick(server);
}

/* The library closes its descriptor, and with MHD_USE_TURBO does not shut the socket down first:
 * the duplicate lives on. (MHD_connection_mark_closed_ in libmicrohttpd 0.9.75 and 1.0; a test of
 * the event streams fails if that changes.) */
int tl_request_take_over(struct tl_request *request)
{
    struct tl_server *server = request->server;
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(request->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    assert(!request->answered);
    request->answered = true;
    server->settings.answered(server->settings.context, 200);
    int fd = info != NULL ? fcntl(info->connect_fd, F_DUPFD_CLOEXEC, 0) : -1;
    if (request->held) {
        request->held = false;
        MHD_resume_connection(request->connection);
        tl_server_kick(server);
    }
    return fd;
}
