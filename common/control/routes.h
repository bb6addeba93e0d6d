/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of the admin calls: the only one. It holds what docs/integrators/openapi-admin.yaml
 * says, and a test compares them.
 */
#ifndef TL_CONTROL_ROUTES_H
#define TL_CONTROL_ROUTES_H

#include <stdbool.h>
#include <stddef.h>

#include "common/auth/token.h"
#include "common/control/target.h"

struct tl_control_call;

enum tl_control_kind {
    TL_CONTROL_CALL,   /* tl_control_call answers it */
    TL_CONTROL_EVENTS, /* server-sent events: the answer of the queue's `stats` once a second */
    TL_CONTROL_EXPORT, /* common/control/export.h */
};

/* What tl_control_call does with an Idempotency-Key. */
enum tl_control_repeat {
    TL_REPEAT_FREELY, /* nothing: the call reads, or doing it twice is as doing it once */
    TL_REPEAT_KEPT,   /* answers a repeated key with the first answer */
};

struct tl_control_route {
    const char *method;
    const char *path;        /* "/v1/admin/queues/{queue}/visitors/{visitor}" */
    const char *operation;   /* operationId */
    enum tl_token_role role; /* the least that may call it */
    bool changes;            /* it changes something, if it succeeds */
    enum tl_control_kind kind;
    enum tl_control_repeat repeat;
    const char *query; /* the parameters it takes, separated by spaces; NULL: none */
    void (*handler)(struct tl_control_call *call); /* NULL unless TL_CONTROL_CALL */
};

/* All routes. Static storage. */
const struct tl_control_route *tl_control_routes(size_t *n);

/* The route of a request; target may have a query. NULL: there is none, and `allow` has the methods
 * that its path takes, "GET, POST" (a 405), or "" when there is no such path (a 404). */
const struct tl_control_route *tl_control_route_find(const char *method, const char *target,
                                                     char allow[64]);
/* The same for a target that is parsed. */
const struct tl_control_route *tl_control_route_of(const char *method,
                                                   const struct tl_target *target, char allow[64]);

#endif
