/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One HTTP request as handlers see it. Strings are borrowed and valid until the answer. Each
 * request gets exactly one answer, at once or in a later turn of the loop (then it is held: its
 * connection is suspended). After the answer the request is gone.
 */
#ifndef TL_REQUEST_H
#define TL_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <uv.h>

#include "common/base/metrics.h"
#include "common/base/net.h"

struct MHD_Connection;
struct tl_request;
struct tl_renderer;

const char *tl_request_method(const struct tl_request *request);
const char *tl_request_path(const struct tl_request *request);
/* NULL when absent. */
const char *tl_request_header(const struct tl_request *request, const char *name);
/* The first cookie with this name. A browser may send several. */
const char *tl_request_cookie(const struct tl_request *request, const char *name);
/* Shows the value of each cookie with this name, in order, until `accept` returns true. Returns
 * whether it did. */
bool tl_request_accept_cookie(const struct tl_request *request, const char *name,
                              bool (*accept)(void *context, const char *value), void *context);
const char *tl_request_query(const struct tl_request *request, const char *name);
/* Shows all parameters of the query, in their order; the value of one without "=" is NULL. */
void tl_request_each_query(const struct tl_request *request,
                           void (*visit)(void *context, const char *name, const char *value),
                           void *context);
/* The values of all lines of this header, in their order: at most `most`, the last ones. Returns
 * how many. */
size_t tl_request_headers(const struct tl_request *request, const char *name, const char **values,
                          size_t most);
/* The address at the other end of the connection. False when it is unknown. */
bool tl_request_peer(const struct tl_request *request, struct tl_address *address);
/* The server's context. */
void *tl_request_context(const struct tl_request *request);
/* visit_size bytes of the room above, aligned for any type: zeroed when the request begins, freed
 * with it. */
void *tl_request_visit(struct tl_request *request);
/* "" and 0 without a body; NUL-terminated. */
const char *tl_request_body(const struct tl_request *request, size_t *length);
/* The request's id: the client's X-Request-Id if it is well-formed, else a random one. */
const char *tl_request_id(const struct tl_request *request);

/* How the answer looks; set by the request's route before its handler runs. */
void tl_request_set_renderer(struct tl_request *request, const struct tl_renderer *renderer);
const struct tl_renderer *tl_request_renderer(const struct tl_request *request);

/* The answer depends on the Origin of the request, and pages of `origin` may read it (CORS); NULL:
 * no other site's pages may. The origin is borrowed until the answer. */
void tl_request_share_with(struct tl_request *request, const char *origin);

/* Has the client closed its end of the connection? It must be answered all the same. */
bool tl_request_gone(const struct tl_request *request);

/* Keeps the request for an answer in a later turn; one that is held already stays held. */
void tl_request_hold(struct tl_request *request);

/* Takes over the connection's socket instead of answering: the caller writes the whole answer
 * itself and closes the descriptor returned. -1 when that is impossible. Either way the request
 * counts as answered. */
int tl_request_take_over(struct tl_request *request);

struct tl_header {
    const char *name, *value;
};
#define TL_ANSWER_HEADERS_MAX 9
struct tl_answer {
    unsigned status;
    const char *type; /* NULL: no body */
    const char *body; /* copied */
    size_t length;
    const char *cache; /* Cache-Control; NULL: no-store */
    size_t n_headers;  /* beside type, length, date, Cache-Control and X-Request-Id */
    struct tl_header headers[TL_ANSWER_HEADERS_MAX]; /* copied */
};
/* The headers for tl_request_share_with. request.c adds them to every answer; only a socket that
 * was taken over needs them. Returns how many there are. */
#define TL_SHARE_HEADERS_MAX 4
size_t tl_request_share_headers(const struct tl_request *request,
                                struct tl_header headers[TL_SHARE_HEADERS_MAX]);
/* Adds a header, unless its value is NULL or the answer is full. Both strings are borrowed until
 * the answer is given. */
void tl_answer_header(struct tl_answer *answer, const char *name, const char *value);
void tl_request_answer(struct tl_request *request, const struct tl_answer *answer);

/* ---- for the server ---- */

/* What all requests of a server share. Filled in by the server. */
struct tl_request_host {
    void *context;              /* what tl_request_context returns */
    struct tl_metrics *metrics; /* answers are counted in it, and: */
    uint64_t unavailable;       /* those with 503 */
    uint64_t max_body;          /* bytes */
    size_t visit_size;          /* of each request */
    bool closing;               /* answers say `Connection: close` */
    uint64_t requests;          /* that exist */
    struct tl_request *spare;   /* for the next ones, this many: */
    unsigned spares;
    uint64_t id_random; /* state of the generator of request ids */
    bool due;           /* the library has something to do, and: */
    uv_idle_t busy;     /* active while it has, so that the loop does not sleep */
};

/* Makes sure that the library runs in this turn. */
void tl_request_host_wake(struct tl_request_host *host);

/* What is wrong with where the request begins and ends, as a sentence; NULL: nothing. A proxy in
 * front of us that reads two Content-Length headers, or a line that ends with a bare LF, in another
 * way than we do would take a part of one visitor's request for the next visitor's. Such requests
 * are refused, and their connection is closed (RFC 9112, 2.2, 5.2 and 6.3). method and version: as
 * the library handed them to the handler. */
const char *tl_framing_problem(struct MHD_Connection *connection, const char *method,
                               const char *version);

/* A new request, or NULL when out of memory. method and path must stay valid. */
struct tl_request *tl_request_new(struct tl_request_host *host, struct MHD_Connection *connection,
                                  const char *method, const char *path, const char *version);
void tl_request_free(struct tl_request *request);
/* Frees the memory that is kept for further requests. */
void tl_request_free_spare(struct tl_request_host *host);
/* tl_framing_problem of its head: it is answered without its body, the last of its connection. */
const char *tl_request_problem(const struct tl_request *request);
/* Is its body larger than max_body, as it declares or as it came? */
bool tl_request_too_large(const struct tl_request *request);
/* Adds bytes of the body. False when the connection should be closed: out of memory, or the body
 * is far too large. */
bool tl_request_add_body(struct tl_request *request, const char *bytes, size_t n);
bool tl_request_answered(const struct tl_request *request);
/* Queues the response of an answered request at its connection. False: the library is to let go of
 * the connection, whose socket was taken over, or there is no memory for the response. */
bool tl_request_deliver(struct tl_request *request);

#endif
