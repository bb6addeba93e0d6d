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
/* The first valid ticket of this queue, a pending one no older than TL_TICKET_PENDING_S, in the
 * Authorization header, the cookies or the query. */
bool tl_visitor_ticket(const struct tl_api *api, const struct tl_request *request,
                       const char *queue, struct tl_ticket *ticket);
/* Is the ticket of another generation of the queue? (A pending ticket is of none.) */
bool tl_visitor_outdated(const struct tl_local_queue *queue, const struct tl_ticket *ticket);

/* Is there no queue of this name? One that the configuration names is created again when the store
 * has lost it. */
bool tl_visitor_no_queue(const struct tl_api *api, const char *name);
/* The queue of that name when its line is loaded; NULL: refused. */
struct tl_local_queue *tl_visitor_queue(const struct tl_api *api, const char *name,
                                        struct tl_refusal *refusal);
/* The queue, and a valid ticket of its present generation (or a pending one); NULL: refused, or
 * held until the place of a lost generation has come back. */
struct tl_local_queue *tl_visitor_of(const struct tl_api *api, struct tl_request *request,
                                     const char *name, struct tl_ticket *ticket,
                                     struct tl_refusal *refusal);
/* Can a command be sent now? */
bool tl_visitor_may_send(const struct tl_api *api, struct tl_refusal *refusal);
/* The name of the trusted caller whose API key the request carries, or NULL. / Does it carry one?
 */
const char *tl_visitor_caller(const struct tl_api *api, const struct tl_request *request);
bool tl_visitor_trusted(const struct tl_api *api, const struct tl_request *request);
/* The visitor's address: the other end of the connection; or, where that is a trusted proxy, the
 * last address in X-Forwarded-For that is not one. False when it is unknown. */
bool tl_visitor_address(const struct tl_api *api, const struct tl_request *request,
                        struct tl_address *address);
/* May this token of the request be verified? Not one that is new here from an address that sent
 * many forged ones in this minute: to verify it is the costly part. Such a request may retry later.
 */
bool tl_visitor_may_verify(const struct tl_api *api, const struct tl_request *request,
                           const struct tl_jwt_keys *keys, const char *text, int64_t now_ms,
                           struct tl_refusal *refusal);
/* The token was refused: counts it for the address, unless it is genuine (and expired, say). */
void tl_visitor_refused(const struct tl_api *api, const struct tl_request *request,
                        const struct tl_jwt_keys *keys, const char *text, int64_t now_ms);
/* Has the address failures left in this minute, of tokens that were not genuine? Counts nothing. */
bool tl_visitor_may_fail(const struct tl_api *api, const struct tl_request *request, int64_t now_ms,
                         struct tl_refusal *refusal);
/* Counts such a failure. */
void tl_visitor_failed(const struct tl_api *api, const struct tl_request *request, int64_t now_ms);
/* Has the visitor's address joins left in this minute, and under pressure in this second? Counts
 * one. */
bool tl_visitor_may_join(struct tl_api *api, struct tl_local_queue *queue,
                         const struct tl_request *request, int64_t now_ms,
                         struct tl_refusal *refusal);
/* May the request become an event stream or a long poll, or are all in use that there are, or that
 * its address may have? *client is the address that counts for it, or stays NULL; `address` is
 * where it is stored. */
bool tl_visitor_may_stay(const struct tl_api *api, const struct tl_request *request,
                         struct tl_address *address, const struct tl_address **client);

#endif
