/* Inside of the server: what server.c and request.c share. */
#ifndef TL_WORKER_REQUEST_H
#define TL_WORKER_REQUEST_H

#include <microhttpd.h>

#include "worker/http/server.h"

#define TL_REQUEST_ID_MAX 64

/* One connection of the library. Those without a whole request are in the server's list, longest
 * first. */
struct tl_connection {
    struct tl_connection *prev, *next;
    int fd;
    bool listed;
    int64_t since_ms; /* of the connection, or of the end of its last request */
};

struct tl_request {
    struct tl_server *server;
    struct MHD_Connection *connection;
    const char *method, *path;
    char *body;
    size_t body_length, body_capacity;
    size_t dropped; /* bytes of a too large body thrown away */
    bool too_large, whole, held, answered;
    struct MHD_Response *response; /* of a held request, until its connection has been resumed */
    unsigned status;
    char id[TL_REQUEST_ID_MAX + 1];
};

struct tl_server {
    struct tl_server_settings settings;
    struct MHD_Daemon *daemon;
    uv_check_t turn;
    uv_idle_t busy;   /* active while there is more to do at once */
    uv_timer_t timer; /* the library's own time-outs */
    uv_poll_t poll;
    struct tl_connection *first, *last; /* connections without a whole request */
    unsigned open_handles;
    bool due; /* the library has something to do */
    bool quiesced;
    uint64_t requests;
    uint64_t random; /* for request ids */
};

/* Makes sure that the library runs in this turn. */
void tl_server_kick(struct tl_server *server);
/* A new request, or NULL when out of memory. */
struct tl_request *tl_request_new(struct tl_server *server, struct MHD_Connection *connection,
                                  const char *method, const char *path);
void tl_request_free(struct tl_request *request);
/* Adds bytes of the body. False when the connection should be closed: out of memory, or no end in
 * sight. */
bool tl_request_add_body(struct tl_request *request, const char *bytes, size_t n);
/* Queues the response of a request that was held. */
enum MHD_Result tl_request_deliver(struct tl_request *request);

#endif
