/* SPDX-License-Identifier: Apache-2.0 */
/* What the threads tell the loop, for all who wait: the queues take it first, then requests are
 * answered and event streams told. */
#ifndef TL_CHANGES_H
#define TL_CHANGES_H

#include "worker/visit/context.h"

/* Takes a change in the store, for the follower; context is the worker. */
void tl_changes_take(void *worker, struct tl_change *change);
/* A command has an outcome, for tl_queue_env; context is its queue. */
tl_outbox_settle tl_changes_settled;

#endif
