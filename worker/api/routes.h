/* Which handler answers what. */
#ifndef TL_ROUTES_H
#define TL_ROUTES_H

#include "worker/process/edge.h"

/* The server's callbacks; context is the edge. */
void tl_routes_handle(void *context, struct tl_request *request);
void tl_routes_too_large(void *context, struct tl_request *request);

/* Handlers; queue is the name in the path, "" where there is none. */
typedef void tl_handler(struct tl_edge *edge, struct tl_request *request, const char *queue);

/* join.c */
tl_handler tl_handle_join;
/* Joins this visitor and holds the request until the place is known. */
void tl_join_visitor(struct tl_room *room, struct tl_request *request, const char *visitor,
                     unsigned lane);

/* The join of whoever holds this invite. */
void tl_join_by_invite(struct tl_room *room, struct tl_request *request, const char *invite);
/* Has this address joins left in this minute? Otherwise answers. */
bool tl_join_allowed(struct tl_edge *edge, struct tl_request *request);

/* visitor.c */
tl_handler tl_handle_status, tl_handle_events, tl_handle_leave, tl_handle_complete, tl_handle_renew;
/* The first genuine ticket of this queue in the Authorization header, the cookie or the query. */
bool tl_visitor_ticket(const struct tl_room *room, const struct tl_request *request,
                       struct tl_ticket *ticket);
/* The credential of `Authorization: Bearer`, or NULL. */
const char *tl_visitor_bearer(const struct tl_request *request);
/* The room of that name when its line is loaded; otherwise answers and returns NULL. */
struct tl_room *tl_visitor_room(struct tl_edge *edge, struct tl_request *request,
                                const char *queue);
/* Can a command be taken now? Otherwise answers with the reason. */
bool tl_visitor_may_send(struct tl_edge *edge, struct tl_request *request);

/* check.c */
tl_handler tl_handle_check, tl_handle_jwks;

/* page_http.c */
tl_handler tl_handle_page, tl_handle_page_join, tl_handle_page_leave, tl_handle_asset,
    tl_handle_openapi;

/* public.c */
tl_handler tl_handle_queue, tl_handle_livez, tl_handle_readyz;

#endif
