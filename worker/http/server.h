/* SPDX-License-Identifier: Apache-2.0 */
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
#include "common/base/metrics.h"
#include "common/base/net.h"
#include "worker/http/refusal.h"
#include "worker/http/request.h"

/* File descriptors that the server uses beyond max_connections for a moment: a connection that is
 * closed to make room is still open when the new one is there. */
#define TL_SERVER_FILES_SPARE 64

struct tl_server;

struct tl_server_settings {
    int listen_fd; /* stays the caller's */
    /* Together with event streams. Above it, connections that wait for their client are closed:
     * those without a complete request, or with an answer that is not taken; longest first. */
    uint64_t max_connections;
    uint64_t connections_per_address;  /* 0: no limit */
    const struct tl_networks *proxies; /* whose connections are not limited; NULL: none. Borrowed */
    int64_t idle_timeout_ms;
    uint64_t max_body; /* bytes */
    size_t visit_size; /* bytes of tl_request_visit */
    /* Counts answers, and connections that are closed to make room or refused. The handler that
     * takes over a connection counts it in TL_WORKER_EVENT_STREAMS for as long as it is open. */
    struct tl_metrics *metrics;
    void *context; /* what tl_request_context returns */
    /* A request is to be answered or held. refusal: NULL, or what it must be answered with: the
     * body is larger than max_body (TOO_LARGE), or the request may end elsewhere than it seems
     * (MALFORMED). */
    void (*handle)(void *context, struct tl_request *request, const struct tl_refusal *refusal);
};

/* Starts serving on the loop. NULL on failure. */
struct tl_server *tl_server_new(uv_loop_t *loop, const struct tl_server_settings *settings,
                                struct tl_error *err);
/* The functions below also take NULL: a server that was not started yet. */

/* Accepts no more; answers say `Connection: close`. Connections in the socket's backlog stay there.
 */
void tl_server_quiesce(struct tl_server *server);
struct tl_server_counts {
    uint64_t connections; /* without event streams */
    uint64_t busy;        /* those of them that cannot give way: a request is worked on */
    uint64_t requests;    /* that are not fully answered yet */
    uint64_t accepted; /* connections taken from the listening socket so far, also those refused */
    uint64_t unavailable; /* requests answered 503 so far */
};
struct tl_server_counts tl_server_counts(const struct tl_server *server);
/* Call every tick: runs the library in this turn, and closes connections whose client has taken
 * longer than idle_timeout_ms for one complete request, even if it keeps sending bytes (the
 * library's own time-out restarts with every byte), or takes its answer too slowly. */
void tl_server_tick(struct tl_server *server, int64_t now_ms);
/* Closes all connections and stops. No request may be held. The handles are freed by the
 * loop's next turns. */
void tl_server_free(struct tl_server **server);

#endif
