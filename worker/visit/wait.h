/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a visit waits for, one thing at a time: the outcome of a command, the store's answer about
 * its place (a lookup), an event that this process has not read yet, a page of a draw's list, or
 * the verdict of the challenge service. Its request is held meanwhile. When that has come, or not
 * in time, the visit takes its next step, once.
 *
 * A visit without a request may wait, too: the lookup of an event stream.
 */
#ifndef TL_WAIT_H
#define TL_WAIT_H

#include <stdbool.h>
#include <stdint.h>

#include "worker/feed/ingest.h"
#include "worker/visit/context.h"

/* Takes a step: the one place where a refusal is rendered. The visit may be gone afterwards. */
void tl_visit_take(struct tl_visit *visit, tl_step *step);

/* ---- beginning ---- */

/* Waits until the command has an outcome, at most http.join_wait. False: refused, if `pending` is
 * NULL: there was no memory for it. */
bool tl_wait_command(struct tl_visit *visit, struct tl_pending_command *pending, tl_step *step);
/* Asks the store about the place of the visit's ticket, and waits as long for the answer. False:
 * that cannot be asked. */
bool tl_wait_lookup(struct tl_visit *visit, tl_step *step);
/* Waits until the queue has read this event, 250 ms at most. */
void tl_wait_event(struct tl_visit *visit, uint64_t event, tl_step *step);
/* The number of the visit's next question to the store. */
uint64_t tl_wait_number(struct tl_visit *visit);
/* Waits so long for the answer. */
void tl_wait_begin(struct tl_visit *visit, enum tl_wait_kind kind, int64_t ms, tl_step *step);

/* ---- ending ---- */

/* Ends it with what has come of it so far. */
void tl_wait_end(struct tl_visit *visit);
/* Was the command applied? */
bool tl_wait_applied(const struct tl_wait *wait);
/* A command has an outcome: ends all that wait for it. */
void tl_waits_settle(struct tl_pending_command *pending, const struct tl_pending_result *result);
/* The store's answer to a lookup; of these two each does nothing if it comes too late. */
void tl_waits_found(struct tl_worker *worker, uint64_t number, enum tl_lookup_found found,
                    enum tl_reason reason);
/* The bytes of the draw ids, or NULL if the store could not say. */
void tl_waits_drawn(struct tl_worker *worker, uint64_t number, const void *ids, size_t length);
/* Call every tick: ends what has reached its deadline, lookups whose place the line has learned,
 * and waits for an event that it has read. */
void tl_waits_tick(struct tl_worker *worker, int64_t now_ms);
/* The queue is recreated or deleted, or all are (NULL): ends what waits for something of it that
 * does not come any more. Commands go on. */
void tl_waits_drop(struct tl_worker *worker, const struct tl_queue *queue);

/* How many wait. */
uint64_t tl_waits_count(const struct tl_waits *waits);

#endif
