/*
 * The HTTP server: libmicrohttpd without threads of its own, driven by a libuv loop.
 *
 * A request is handed over when it is complete. Everything here belongs to the loop's thread.
 */
#ifndef TL_SERVER_H
#define TL_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <uv.h>

#include "common/base/error.h"
#include "worker/http/request.h"

struct tl_server;

struct tl_server_settings {
    int listen_fd; /* stays the caller's */
    uint64_t max_connections;
    int64_t idle_timeout_ms;
    uint64_t max_body;     /* bytes */
    void *handler_context; /* also what tl_request_context returns */
    void (*handle)(void *handler_context, struct tl_request *request);
    /* The body is larger than max_body: answers with a refusal. */
    void (*too_large)(void *handler_context, struct tl_request *request);
    void *context;
    /* Told of each answer's status. */
    void (*answered)(void *context, unsigned status);
    /* Once at the end of every turn of the loop. */
    void (*turn_end)(void *context);
};

/* Starts serving on the loop. NULL on failure. */
struct tl_server *tl_server_new(uv_loop_t *loop, const struct tl_server_settings *settings,
                                struct tl_error *err);
/* The functions below also take NULL: a server that was not started yet. */

/* Accepts no more; answers say `Connection: close`. Connections in the socket's backlog stay there.
 */
void tl_server_quiesce(struct tl_server *server);
uint64_t tl_server_connections(const struct tl_server *server);
/* Requests that are not fully answered yet. */
uint64_t tl_server_requests(const struct tl_server *server);
/* Closes connections that have taken longer than idle_timeout_ms for one complete request, even if
 * they keep sending bytes (the library's own time-out restarts with every byte). Call every tick.
 */
void tl_server_expire(struct tl_server *server, int64_t now_ms);
/* Closes all connections and stops. No request may be held any more. The handles are freed by the
 * loop's next turns. */
void tl_server_free(struct tl_server **server);

#endif
