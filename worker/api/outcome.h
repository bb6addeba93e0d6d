/* SPDX-License-Identifier: Apache-2.0 */
/* Answers requests that waited: for the outcome of their command, for the store's word on a place,
 * or for a change of their place. The callbacks of holds and subscribers; context is the api. */
#ifndef TL_OUTCOME_H
#define TL_OUTCOME_H

#include "worker/queue/holds.h"
#include "worker/queue/subscribers.h"

/* result NULL: the command has no outcome in time. */
void tl_outcome_settled(void *context, const struct tl_held *held,
                        const struct tl_pending_command *pending,
                        const struct tl_pending_result *result);
void tl_outcome_looked_up(void *context, const struct tl_held *held, bool known);

void tl_outcome_changed(void *context, struct tl_queue *queue, struct tl_request *request,
                        const struct tl_ticket *ticket, bool give_ticket);
void tl_outcome_refused(void *context, struct tl_queue *queue, struct tl_request *request,
                        bool blocked);

#endif
