/* SPDX-License-Identifier: Apache-2.0 */
/* Places that the store has lost come back (docs/operators/recovery.md), for requests with tickets
 * of them and for open streams: a whole generation, or the end of the present one. */
#ifndef TL_API_RESTORE_H
#define TL_API_RESTORE_H

#include <stdbool.h>

#include "common/auth/pass.h"
#include "common/auth/ticket.h"
#include "worker/api/context.h"
#include "worker/http/refusal.h"

/* For a ticket of a lost place, or of another generation. If its place may come back, asks for it
 * and holds the request, which is handled again when the outcome is known (TL_REFUSAL_HELD). Else
 * refuses it. Always false. */
bool tl_restore_request(const struct tl_api *api, struct tl_queue *queue,
                        struct tl_request *request, const struct tl_ticket *ticket,
                        struct tl_refusal *refusal);
/* The callback of the subscribers. */
void tl_restore_subscriber(void *context, struct tl_queue *queue, const struct tl_ticket *ticket);
/* Did the operator remove the visitor from this place of this generation? Nothing gives such a
 * visitor another place, as long as the end is remembered. */
bool tl_restore_removed(const struct tl_queue *queue, uint64_t generation, tl_place place);
/* The place of a pass, as a ticket. */
struct tl_ticket tl_restore_ticket(const struct tl_pass *pass);
/* The same as tl_restore_request, for the session of a valid pass. */
bool tl_restore_pass(const struct tl_api *api, struct tl_queue *queue, struct tl_request *request,
                     const struct tl_pass *pass, struct tl_refusal *refusal);
/* While the queue recovers: lets the session of a valid pass come back, if it is lost. False if
 * that session is known to have ended: the pass is void. */
bool tl_restore_session(struct tl_queue *queue, const struct tl_pass *pass);

#endif
