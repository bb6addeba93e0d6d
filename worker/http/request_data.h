/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of a request: what request.c (the handlers' side) and request_host.c (the server's) share.
 */
#ifndef TL_REQUEST_DATA_H
#define TL_REQUEST_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <microhttpd.h>

#define TL_REQUEST_ID_MAX 64

struct tl_renderer;
struct tl_request_host;

struct tl_request {
    struct tl_request_host *host;
    struct MHD_Connection *connection;
    const struct tl_renderer *renderer;
    const char *method, *path;
    char *body;
    size_t body_length, body_capacity;
    size_t dropped; /* bytes of a too large body */
    bool too_large, complete, held, answered;
    bool last;                     /* of its connection */
    bool by_origin;                /* the answer depends on the Origin */
    const char *shared_origin;     /* whose pages may read the answer; NULL: none */
    struct MHD_Response *response; /* of an answer that is not delivered yet */
    unsigned status;
    char id[TL_REQUEST_ID_MAX + 1];
};

/* What all requests of a server share. Filled in by the server. */
struct tl_request_host {
    void *handler_context;                            /* what tl_request_context returns */
    void *context;                                    /* for `answered` */
    uint64_t max_body;                                /* bytes */
    bool closing;                                     /* answers say `Connection: close` */
    uint64_t requests;                                /* that exist */
    uint64_t id_random;                               /* state of the generator of request ids */
    void (*answered)(void *context, unsigned status); /* told of each answer's status */
    /* A held request was answered: the library must run in this turn. */
    void (*resumed)(struct tl_request_host *host);
};

#endif
