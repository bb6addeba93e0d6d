/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tells the visitors of all queues what changed: over event streams, and by answering requests that
 * wait for a change (long polls).
 *
 * A visitor who is admitted, whose place ends, or who is among the first in the line is told at
 * once, by the event that caused it. One shared timer serves all subscribers in turn, each about
 * twice a second, and tells new positions; the further back a visitor is, the more time lies
 * between two such messages. A turn marks the visitor as present and sends no command to the store.
 *
 * A stream whose place has no number yet, or is not known here, is opened all the same. The store
 * is asked about the place, and the stream is told as soon as it is known.
 *
 * now_ms is local monotonic time everywhere.
 */
#ifndef TL_SUBSCRIBERS_H
#define TL_SUBSCRIBERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "worker/visit/visit.h"

/* Ends all streams of a queue (NULL: of all queues), and refuses all requests that wait. */
void tl_subscribers_end(struct tl_worker *worker, const struct tl_queue *queue);

/* ---- new subscribers: of the queue and the ticket of a visit, whose address, if it is known,
 * counts them and may be blocked ---- */

/* Turns the request into an event stream, and sends the first event if the place is known or
 * pending. A ticket that has as many as it may (http.streams_per_ticket) loses its oldest stream.
 * language: a BCP 47 code that lasts as long as the process, or NULL. False when out of memory:
 * then the request is still to be answered. */
bool tl_subscribers_stream(struct tl_visit *visit, const char *language);
/* Holds the request until the place changes, or until deadline_ms, and answers it with the view.
 * The place must be known. until_admitted: a join, whose answer carries the ticket; only its
 * admission is a change, so that the answer says "active" at once. False when the ticket has as
 * many as it may (a join always may), or when out of memory. */
bool tl_subscribers_wait(struct tl_visit *visit, int64_t deadline_ms, bool until_admitted);

/* ---- what has changed: tells the subscribers concerned ---- */

/* The line has taken an entry. */
void tl_subscribers_entry(struct tl_worker *worker, const struct tl_queue *queue,
                          const struct tl_event_entry *entry, int64_t now_ms);
/* The store has answered about this place. */
void tl_subscribers_look(struct tl_worker *worker, const struct tl_queue *queue, tl_place place,
                         int64_t now_ms);
/* The JOIN of a pending ticket's visitor was applied. */
void tl_subscribers_joined(struct tl_worker *worker, const struct tl_queue *queue,
                           const struct tl_pending_command *join,
                           const struct tl_pending_result *result, int64_t now_ms);
/* The queue has a line of another generation: ends all subscriptions to places of the former one,
 * except streams whose place may come back. Those without a number stay. */
void tl_subscribers_recreated(struct tl_worker *worker, const struct tl_queue *queue,
                              int64_t now_ms);

/* ---- in turn ---- */

/* Call every few ms: serves the subscribers that are due, so that each has a turn within half a
 * second. */
void tl_subscribers_sweep(struct tl_worker *worker, int64_t now_ms);
/* From now on ends all subscriptions, spread over the time until until_ms; clients reconnect to
 * another worker. */
void tl_subscribers_drain(struct tl_worker *worker, int64_t now_ms, int64_t until_ms);

#endif
