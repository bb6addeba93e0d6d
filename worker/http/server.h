/*
 * The HTTP server: libmicrohttpd without threads of its own, driven by a libuv loop.
 *
 * A request is handed over when it is there whole. The handler either answers it at once or holds
 * it (its connection is suspended) and answers it in a later turn. Each request gets exactly one
 * answer; after it the request is gone. Everything here belongs to the loop's thread.
 */
#ifndef TL_SERVER_H
#define TL_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <uv.h>

#include "common/base/error.h"
#include "common/base/networks.h"

struct tl_server;
struct tl_request;

struct tl_server_settings {
    int listen_fd; /* stays the caller's */
    uint64_t max_connections;
    int64_t idle_timeout_ms;
    uint64_t max_body; /* bytes */
    void *context;
    void (*handle)(void *context, struct tl_request *request);
    /* A body larger than max_body was refused: answers with a problem. */
    void (*too_large)(void *context, struct tl_request *request);
    /* Told of each answer's status. */
    void (*answered)(void *context, unsigned status);
    /* Once at the end of every turn of the loop. */
    void (*turn_end)(void *context);
};

/* Starts serving on the loop. */
struct tl_server *tl_server_new(uv_loop_t *loop, const struct tl_server_settings *settings,
                                struct tl_error *err);
/* The next three also take NULL: a server that was not started yet. */
/* Accepts no more; answers say `Connection: close`. Connections in the socket's backlog stay there.
 */
void tl_server_quiesce(struct tl_server *server);
uint64_t tl_server_connections(const struct tl_server *server);
/* Requests without their whole answer on the way yet. */
uint64_t tl_server_requests(const struct tl_server *server);
/* Closes connections that have taken longer than idle_timeout_ms for a whole request, however
 * busily they drip bytes (the library's own time-out begins anew with every byte). Call now and
 * then. NULL allowed. */
void tl_server_expire(struct tl_server *server, int64_t now_ms);
/* Closes all connections and stops. No request may be held any more. The handles are freed by the
 * loop's next turns. */
void tl_server_free(struct tl_server **server);

/* ---- requests: strings are borrowed and valid until the answer ---- */

const char *tl_request_method(const struct tl_request *request);
const char *tl_request_path(const struct tl_request *request);
/* NULL when absent. */
const char *tl_request_header(const struct tl_request *request, const char *name);
const char *tl_request_cookie(const struct tl_request *request, const char *name);
const char *tl_request_query(const struct tl_request *request, const char *name);
/* The address at the other end of the connection. False when it is unknown. */
bool tl_request_peer(const struct tl_request *request, struct tl_address *address);
/* The server's context. */
void *tl_request_context(const struct tl_request *request);
/* "" and 0 without a body; NUL-terminated. */
const char *tl_request_body(const struct tl_request *request, size_t *length);
/* The request's id: the client's X-Request-Id if it sent a sensible one. */
const char *tl_request_id(const struct tl_request *request);

/* Keeps the request for an answer in a later turn; one that is held already stays so. */
void tl_request_hold(struct tl_request *request);

/* Takes the connection's socket over instead of answering: the caller writes the whole answer
 * itself, and closes the descriptor returned. -1 when that is impossible. Either way the request is
 * settled. */
int tl_request_take_over(struct tl_request *request);

struct tl_header {
    const char *name, *value;
};
#define TL_ANSWER_HEADERS_MAX 8
struct tl_answer {
    unsigned status;
    const char *type; /* NULL: no body */
    const char *body; /* copied */
    size_t length;
    const char *cache; /* Cache-Control; NULL: no-store */
    size_t n_headers;  /* beside type, length, date, Cache-Control and X-Request-Id */
    struct tl_header headers[TL_ANSWER_HEADERS_MAX]; /* copied */
};
void tl_request_answer(struct tl_request *request, const struct tl_answer *answer);

#endif
