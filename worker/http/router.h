/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table of routes: how a request finds its handler, and gets one answer if that refuses. How
 * answers look, JSON for programs or a page for people, is the renderer's matter. The route sets
 * it, so that the code which answers later need not ask what kind of request it was.
 */
#ifndef TL_ROUTER_H
#define TL_ROUTER_H

#include <stdbool.h>
#include <stddef.h>

#include "common/wire/names.h"
#include "worker/http/refusal.h"
#include "worker/http/request.h"

struct tl_view; /* what is said of a place; its definition belongs to the code that makes views */

struct tl_renderer {
    /* Answers with the view. cookie: a Set-Cookie value, or NULL. */
    void (*view)(struct tl_request *request, const struct tl_view *view, const char *cookie);
    void (*refusal)(struct tl_request *request, const struct tl_refusal *refusal);
};

struct tl_visit; /* what handlers work on; its definition belongs to them */

/* A step on the way to the answer: the handler of a route, or what follows when the request has
 * waited. Answers it, or lets it wait, and returns true; or refuses it and returns false. */
typedef bool tl_step(struct tl_visit *visit);

struct tl_route {
    const char *method;  /* GET takes HEAD as well; NULL: every path that begins with the pattern */
    const char *pattern; /* '*' stands for one segment; with one, a '/' at the end for all that
                          * follows */
    tl_step *handler;    /* NULL without a method: such a path is not found */
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

/* Answers a request through its renderer. */
void tl_render_view(struct tl_request *request, const struct tl_view *view, const char *cookie);
void tl_render_refusal(struct tl_request *request, const struct tl_refusal *refusal);
/* The same with a kind and a sentence. */
void tl_render_refused(struct tl_request *request, enum tl_refusal_kind kind, const char *detail);

#endif
