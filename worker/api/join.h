/* SPDX-License-Identifier: Apache-2.0 */
/* How visitors get a place: POST /v1/queues/{q}/join, and what other handlers need of it. */
#ifndef TL_JOIN_H
#define TL_JOIN_H

#include <stdbool.h>

#include "common/auth/ticket.h"
#include "worker/api/challenge.h"
#include "worker/api/context.h"
#include "worker/api/verifications.h"
#include "worker/http/refusal.h"
#include "worker/http/request.h"
#include "worker/http/router.h"

tl_handler tl_handle_join;

/* Joins a visitor who holds no place and has no invite: the request must pass the queue's
 * challenge. visitor: as of an earlier ticket, or NULL for a new one. Counted against the address.
 * False: refused. */
bool tl_join_newcomer(struct tl_api *api, struct tl_queue *queue, struct tl_request *request,
                      const char *visitor, unsigned lane, const struct tl_proof *proof,
                      struct tl_refusal *refusal);
/* Joins a newcomer whose token the challenge service accepted. False: refused. */
bool tl_join_verified(struct tl_api *api, const struct tl_token_join *join,
                      struct tl_refusal *refusal);
/* Joins the visitor of an invite. */
bool tl_join_by_invite(struct tl_api *api, struct tl_queue *queue, struct tl_request *request,
                       const char *invite, struct tl_refusal *refusal);
/* Lets the bearer of this invite past the line, if it is a bypass. False: it is not; nothing is
 * answered. */
bool tl_join_passes_by(struct tl_api *api, struct tl_queue *queue, struct tl_request *request,
                       const char *invite);
/* Joins again with the ticket of a place that the visitor holds, as far as this process knows. */
void tl_join_confirm(struct tl_api *api, struct tl_queue *queue, struct tl_request *request,
                     const struct tl_ticket *ticket);
/* Joins the visitor of a pending ticket again: the same join. */
bool tl_join_by_ticket(struct tl_api *api, struct tl_queue *queue, struct tl_request *request,
                       const struct tl_ticket *ticket, struct tl_refusal *refusal);
/* The holder of a pending ticket leaves: the place is given up as soon as its number is known. */
bool tl_join_then_leave(struct tl_api *api, struct tl_queue *queue, struct tl_request *request,
                        const struct tl_ticket *ticket, struct tl_refusal *refusal);
/* Has the join that was applied a place? */
bool tl_join_gave_place(const struct tl_pending_result *result);
/* Joins again after the place of a pending ticket has ended, as the same visitor, where the queue
 * lets newcomers in. Answers the request, which was held. */
void tl_join_past_end(struct tl_api *api, struct tl_queue *queue, struct tl_request *request,
                      const struct tl_ticket *ticket);
/* Does this JOIN repeat that of a pending ticket? *issued: the ticket's time. */
bool tl_join_repeats(const struct tl_pending_command *join, uint32_t *issued);
/* For event streams: asks for the number of a pending ticket's place, if a command can be sent now.
 * context is the api. */
void tl_join_ask_number(void *context, struct tl_queue *queue, const struct tl_ticket *ticket);

#endif
