/* Who a request comes from, and whether it may do what it asks. Predicates fill in a refusal
 * instead of answering. */
#ifndef TL_API_VISITOR_H
#define TL_API_VISITOR_H

#include <stdbool.h>

#include "common/auth/ticket.h"
#include "worker/api/context.h"
#include "worker/http/refusal.h"
#include "worker/http/request.h"

/* The credential of `Authorization: Bearer`, or NULL. */
const char *tl_visitor_bearer(const struct tl_request *request);
/* The first valid ticket of this queue in the Authorization header, the cookie or the query. */
bool tl_visitor_ticket(const struct tl_api *api, const struct tl_request *request,
                       const char *queue, struct tl_ticket *ticket);
/* Is the ticket of another generation of the queue? (A pending ticket is of none.) */
bool tl_visitor_outdated(const struct tl_local_queue *queue, const struct tl_ticket *ticket);

/* The queue of that name when its line is loaded; NULL: refused. */
struct tl_local_queue *tl_visitor_queue(const struct tl_api *api, const char *name,
                                        struct tl_refusal *refusal);
/* The queue, and a valid ticket of its present generation (or a pending one); NULL: refused. */
struct tl_local_queue *tl_visitor_of(const struct tl_api *api, const struct tl_request *request,
                                     const char *name, struct tl_ticket *ticket,
                                     struct tl_refusal *refusal);
/* Can a command be sent now? */
bool tl_visitor_may_send(const struct tl_api *api, struct tl_refusal *refusal);
/* Has the visitor's address joins left in this minute? Counts one. */
bool tl_visitor_may_join(struct tl_api *api, const struct tl_request *request, int64_t now_ms,
                         struct tl_refusal *refusal);

#endif
