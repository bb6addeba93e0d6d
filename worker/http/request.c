/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <ctype.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <microhttpd.h>

#include "common/base/grow.h"
#include "worker/http/request.h"
#include "worker/report/worker_metrics.h"

#define REQUEST_ID_MAX 64
/* This much of a body that is too large is read and dropped, so that the client can read why. */
enum { DROPPED_MAX = 1024 * 1024 };
enum { SPARE_MAX = 256 }; /* requests that are kept for the next ones */

struct tl_request {
    struct tl_request_host *host;
    struct tl_request *next; /* while it is spare */
    struct MHD_Connection *connection;
    const struct tl_renderer *renderer;
    const char *method, *path;
    char *body;
    size_t body_length, body_capacity;
    size_t dropped;      /* bytes of a too large body */
    const char *problem; /* of its head; NULL: none */
    uint64_t names;      /* a bit for each name in the head, see mark_of */
    bool too_large, held, answered;
    bool by_origin;                /* the answer depends on the Origin */
    const char *shared_origin;     /* whose pages may read the answer; NULL: none */
    struct MHD_Response *response; /* of an answer that is not delivered yet */
    unsigned status;
    char id[REQUEST_ID_MAX + 1];
    _Alignas(max_align_t) unsigned char visit[];
};

/* ---- reading ---- */

const char *tl_request_method(const struct tl_request *request)
{
    return request->method;
}

const char *tl_request_path(const struct tl_request *request)
{
    return request->path;
}

/* The bit of a name among the headers, cookies or query parameters. Names with the same bit are
 * told apart by a search; most that are asked for are absent, and their bit is, too (a Bloom filter
 * with one hash function: B. Bloom, 1970). Letters of either case have the same bit. */
static uint64_t mark_of(enum MHD_ValueKind kind, const char *name, size_t length)
{
    const unsigned char first = (unsigned char)name[0] | 0x20;
    return UINT64_C(1) << ((first + length * 5 + kind * UINT64_C(11)) & 63);
}

static enum MHD_Result mark(void *context, enum MHD_ValueKind kind, const char *name,
                            size_t name_length, const char *value, size_t length)
{
    struct tl_request *request = context;
    (void)value;
    (void)length;
    request->names |= mark_of(kind, name, name_length);
    return MHD_YES;
}

static bool may_have(const struct tl_request *request, enum MHD_ValueKind kind, const char *name)
{
    return (request->names & mark_of(kind, name, strlen(name))) != 0;
}

static const char *value_of(const struct tl_request *request, enum MHD_ValueKind kind,
                            const char *name)
{
    return may_have(request, kind, name)
               ? MHD_lookup_connection_value(request->connection, kind, name)
               : NULL;
}

const char *tl_request_header(const struct tl_request *request, const char *name)
{
    return value_of(request, MHD_HEADER_KIND, name);
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
    if (may_have(request, MHD_HEADER_KIND, name))
        (void)MHD_get_connection_values(request->connection, MHD_HEADER_KIND, add_line, &lines);
    return lines.n;
}

const char *tl_request_cookie(const struct tl_request *request, const char *name)
{
    return value_of(request, MHD_COOKIE_KIND, name);
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
    if (may_have(request, MHD_COOKIE_KIND, name))
        MHD_get_connection_values(request->connection, MHD_COOKIE_KIND, try_cookie, &search);
    return search.accepted;
}

const char *tl_request_query(const struct tl_request *request, const char *name)
{
    return value_of(request, MHD_GET_ARGUMENT_KIND, name);
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
    return request->host->context;
}

void *tl_request_visit(struct tl_request *request)
{
    return request->visit;
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
    if (ok && (request->host->closing || request->problem != NULL))
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

static void on_busy(uv_idle_t *handle)
{
    (void)handle; /* an active idle handle keeps the loop from sleeping */
}

void tl_request_host_wake(struct tl_request_host *host)
{
    host->due = true;
    uv_idle_start(&host->busy, on_busy); /* does nothing when it is active */
}

/* The request has its answer: counts it, and wakes its connection if it was held. */
static void finish(struct tl_request *request, unsigned status)
{
    struct tl_request_host *host = request->host;
    assert(!request->answered);
    request->answered = true;
    request->status = status;
    host->unavailable += status == 503;
    tl_metrics_add(host->metrics,
                   status < 400   ? TL_WORKER_ANSWERS_OK
                   : status < 500 ? TL_WORKER_ANSWERS_REFUSED
                                  : TL_WORKER_ANSWERS_FAILED,
                   1);
    if (!request->held)
        return; /* the server delivers as soon as the handler returns */
    request->held = false;
    MHD_resume_connection(request->connection);
    tl_request_host_wake(host);
}

void tl_request_answer(struct tl_request *request, const struct tl_answer *answer)
{
    request->response = make_response(request, answer);
    finish(request, answer->status);
}

/* The library closes its descriptor, and with MHD_USE_TURBO does not shut the socket down first:
 * the duplicate stays usable. (MHD_connection_mark_closed_ in libmicrohttpd 0.9.75 and 1.0; a test
 * of the event streams fails if that changes.) */
int tl_request_take_over(struct tl_request *request)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(request->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    int fd = info != NULL ? fcntl(info->connect_fd, F_DUPFD_CLOEXEC, 0) : -1;
    finish(request, 200);
    return fd;
}

/* ---- framing ---- */

/* libmicrohttpd 1.0 refuses bare LF itself (MHD_OPTION_CLIENT_DISCIPLINE_LVL). */
#define LINES_ARE_CHECKED_HERE (MHD_VERSION < 0x01000000)

struct head {
    unsigned lengths, encodings; /* how many headers of this name */
    bool chunked;
    bool named;       /* no name so far has white space in it */
    bool sound;       /* each line so far ended with CR LF, and none has a CR in it */
    const char *last; /* the end of the last value in memory */
};

static bool is_named(const char *name, size_t length, const char *wanted)
{
    return length == strlen(wanted) && strncasecmp(name, wanted, length) == 0;
}

/* The library ends each value with zeros in the place of its line's end: two for CR LF, one for a
 * bare LF. At least one more line end follows every value, so both bytes are the request's. */
static enum MHD_Result look(void *context, enum MHD_ValueKind kind, const char *name,
                            size_t name_length, const char *value, size_t length)
{
    struct head *head = context;
    (void)kind;
    head->named = head->named && memchr(name, ' ', name_length) == NULL &&
                  memchr(name, '\t', name_length) == NULL;
    if (is_named(name, name_length, "Content-Length")) {
        head->lengths++;
    } else if (is_named(name, name_length, "Transfer-Encoding")) {
        head->encodings++;
        head->chunked = value != NULL && is_named(value, length, "chunked");
    }
    if (value == NULL)
        return MHD_YES;
    head->sound = head->sound && value[length + 1] == '\0' && memchr(value, '\r', length) == NULL;
    if (head->last == NULL || value + length > head->last)
        head->last = value + length;
    return MHD_YES;
}

/* The request line, the last header and the empty line behind it end with CR LF, too. The header
 * size tells where the head ends. */
static bool lines_are_sound(struct MHD_Connection *connection, const struct head *head,
                            const char *method, const char *version)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    if (!LINES_ARE_CHECKED_HERE)
        return true;
    if (!head->sound || info == NULL || version[strlen(version) + 1] != '\0')
        return false;
    const char *end = method + info->header_size;
    const char *last = head->last != NULL ? head->last : version + strlen(version);
    return end - last == 4;
}

const char *tl_framing_problem(struct MHD_Connection *connection, const char *method,
                               const char *version)
{
    struct head head = {.named = true, .sound = true};
    (void)MHD_get_connection_values_n(connection, MHD_HEADER_KIND, look, &head);
    if (head.lengths > 1)
        return "There is more than one Content-Length";
    if (head.encodings > 0 && head.lengths > 0)
        return "There are both Content-Length and Transfer-Encoding";
    if (head.encodings > 1 || (head.encodings == 1 && !head.chunked))
        return "The only Transfer-Encoding is chunked";
    if (!head.named)
        return "There is white space before a colon";
    if (!lines_are_sound(connection, &head, method, version))
        return "Each line of the head must end with CR LF";
    return NULL;
}

/* ---- life ---- */

/* The id that the client sent, if it is valid, or a new one. */
static void make_id(struct tl_request *request)
{
    static const char digits[] = "0123456789abcdef";
    const char *given = tl_request_header(request, "X-Request-Id");
    size_t n = 0;
    while (given != NULL && n <= REQUEST_ID_MAX &&
           (isalnum((unsigned char)given[n]) || (given[n] != '\0' && strchr("._-", given[n]))))
        n++;
    if (n > 0 && n <= REQUEST_ID_MAX && given[n] == '\0') {
        memcpy(request->id, given, n + 1);
        return;
    }
    /* splitmix64 (G. Steele et al., 2014): ids need to differ, not to be secret. */
    uint64_t number = (request->host->id_random += UINT64_C(0x9E3779B97F4A7C15));
    number = (number ^ (number >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    number = (number ^ (number >> 27)) * UINT64_C(0x94D049BB133111EB);
    number ^= number >> 31;
    for (size_t i = 0; i < 16; i++, number >>= 4)
        request->id[i] = digits[number & 15];
    request->id[16] = '\0';
}

/* A spare one, or a new one. A large block for each request would make the allocator tidy up each
 * time, which costs more than all small ones together. */
static struct tl_request *take(struct tl_request_host *host)
{
    const size_t size = sizeof(struct tl_request) + host->visit_size;
    struct tl_request *request = host->spare;
    if (request == NULL)
        return calloc(1, size);
    host->spare = request->next;
    host->spares--;
    memset(request, 0, size);
    return request;
}

struct tl_request *tl_request_new(struct tl_request_host *host, struct MHD_Connection *connection,
                                  const char *method, const char *path, const char *version)
{
    struct tl_request *request = take(host);
    if (request == NULL)
        return NULL;
    request->host = host;
    request->connection = connection;
    request->method = method;
    request->path = path;
    request->problem = tl_framing_problem(connection, method, version);
    (void)MHD_get_connection_values_n(
        connection, MHD_HEADER_KIND | MHD_COOKIE_KIND | MHD_GET_ARGUMENT_KIND, mark, request);
    const char *length = tl_request_header(request, "Content-Length");
    request->too_large = length != NULL && strtoull(length, NULL, 10) > host->max_body;
    make_id(request);
    host->requests++;
    return request;
}

void tl_request_free(struct tl_request *request)
{
    if (request->response != NULL)
        MHD_destroy_response(request->response);
    struct tl_request_host *host = request->host;
    host->requests--;
    free(request->body);
    if (host->spares == SPARE_MAX) {
        free(request);
        return;
    }
    request->next = host->spare;
    host->spare = request;
    host->spares++;
}

void tl_request_free_spare(struct tl_request_host *host)
{
    while (host->spare != NULL) {
        struct tl_request *next = host->spare->next;
        free(host->spare);
        host->spare = next;
    }
    host->spares = 0;
}

const char *tl_request_problem(const struct tl_request *request)
{
    return request->problem;
}

bool tl_request_too_large(const struct tl_request *request)
{
    return request->too_large;
}

bool tl_request_answered(const struct tl_request *request)
{
    return request->answered;
}

bool tl_request_add_body(struct tl_request *request, const char *bytes, size_t n)
{
    if (request->too_large || n > request->host->max_body - request->body_length) {
        request->too_large = true;
        request->dropped += n;
        return request->dropped <= DROPPED_MAX;
    }
    size_t length = request->body_length + n;
    char *body = tl_grow(request->body, &request->body_capacity, length + 1, 1);
    if (body == NULL)
        return false;
    memcpy(body + request->body_length, bytes, n);
    body[length] = '\0';
    request->body = body;
    request->body_length = length;
    return true;
}

bool tl_request_deliver(struct tl_request *request)
{
    if (request->response == NULL)
        return false;
    bool queued =
        MHD_queue_response(request->connection, request->status, request->response) == MHD_YES;
    MHD_destroy_response(request->response);
    request->response = NULL;
    return queued;
}
