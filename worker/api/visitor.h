/* SPDX-License-Identifier: Apache-2.0 */
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

/* Is there no queue of this name, or was it deleted? One that the store has lost is still known. */
bool tl_visitor_no_queue(const struct tl_api *api, const char *name);
/* The queue of that name when its line is loaded; NULL: refused. */
struct tl_queue *tl_visitor_queue(const struct tl_api *api, const char *name,
                                  struct tl_refusal *refusal);
/* The queue, and a valid ticket of its present generation (or a pending one); NULL: refused, or
 * held until the place of a lost generation has come back. */
struct tl_queue *tl_visitor_of(const struct tl_api *api, struct tl_request *request,
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
/* Does the request come, as far as it says itself, through a proxy that is not trusted? Then its
 * visitors all have this address, that of the proxy. */
bool tl_visitor_shares(const struct tl_request *request, const struct tl_address *address);
/* An address that stands for something else that is counted: this one of the queue. */
struct tl_address tl_visitor_stand_in(const char *queue, const char *name);
/* May this visitor's ticket send one more command that changes little, however often it comes: a
 * join of who holds a place, a renewal? Else what is known is the answer. Counts one. */
bool tl_visitor_may_repeat(const struct tl_api *api, const struct tl_queue *queue,
                           const struct tl_ticket *ticket);
/* Tokens of one kind that a request brings for this queue. Those that were not genuine are counted,
 * for the address; a request that has a ticket, too, is counted by that. */
struct tl_visitor_tokens {
    enum tl_limiter_kind kind;
    const char *queue;
    const struct tl_request *request;
    int64_t now_ms;
};
/* May this token be verified? What costs little always is. A costly one is not, after many that
 * were not genuine; such a request may retry later. */
bool tl_visitor_may_verify(const struct tl_api *api, const struct tl_visitor_tokens *tokens,
                           const struct tl_jwt_keys *keys, const char *text,
                           struct tl_refusal *refusal);
/* The token was refused: counts it, if that took costly work. */
void tl_visitor_refused(const struct tl_api *api, const struct tl_visitor_tokens *tokens,
                        const struct tl_jwt_keys *keys, const char *text);
/* The same for tokens that cost much in any case. */
bool tl_visitor_may_fail(const struct tl_api *api, const struct tl_visitor_tokens *tokens,
                         struct tl_refusal *refusal);
void tl_visitor_failed(const struct tl_api *api, const struct tl_visitor_tokens *tokens);
/* Has the visitor's address a join left, and under pressure one in this second? Counts one. paid: a
 * challenge was passed for it, which is the limit then. */
bool tl_visitor_may_join(struct tl_api *api, struct tl_queue *queue,
                         const struct tl_request *request, bool paid, int64_t now_ms,
                         struct tl_refusal *refusal);
/* May the request become an event stream or a long poll, or are all in use that there are, or that
 * its address may have? *client is the address that counts for it, or stays NULL; `address` is
 * where it is stored. */
bool tl_visitor_may_stay(const struct tl_api *api, const struct tl_request *request,
                         struct tl_address *address, const struct tl_address **client);

#endif
