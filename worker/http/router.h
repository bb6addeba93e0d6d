/* SPDX-License-Identifier: Apache-2.0 */
/* A table of routes: how a request finds its handler, and gets one answer if that refuses. */
#ifndef TL_ROUTER_H
#define TL_ROUTER_H

#include <stdbool.h>
#include <stddef.h>

#include "common/wire/names.h"
#include "worker/http/refusal.h"
#include "worker/http/renderer.h"
#include "worker/http/request.h"

struct tl_visit; /* what handlers work on; its definition belongs to them */

/* Answers the request or holds it, and returns true; or refuses it and returns false. */
typedef bool tl_handler(struct tl_visit *visit);

struct tl_route {
    const char *method;  /* GET takes HEAD as well; NULL: every path that begins with the pattern */
    const char *pattern; /* '*' stands for one segment */
    tl_handler *handler; /* NULL without a method: such a path is not found */
    const struct tl_renderer *renderer; /* how the answers look */
};

/* One more than the name of a queue may have, and the terminator. */
#define TL_ROUTER_QUEUE_MAX (TL_QUEUE_NAME_MAX + 2)

/* The first route that fits, whose renderer the request has from now on. queue: the segment of the
 * path that `*` stands for, "" without one; a segment too long for a queue's name is cut, and so
 * names none. NULL: refused. The table's last row must fit every path: {NULL, "/", NULL, renderer}.
 */
const struct tl_route *tl_router_find(const struct tl_route *routes, struct tl_request *request,
                                      char queue[TL_ROUTER_QUEUE_MAX], struct tl_refusal *refusal);
/* Refuses the request in the way of its route. */
void tl_router_refuse(const struct tl_route *routes, struct tl_request *request,
                      const struct tl_refusal *refusal);

#endif
