/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams of server-sent events with the numbers of a queue, once a second. The streams of one
 * queue share one reading. A stream ends when its bearer's token or session does, and when the
 * queue is deleted. Thread-safe.
 *
 *   event: stats     data: the answer of GET .../stats
 *   event: problem   data: the problem that the reading got; the stream goes on
 *   event: end       data: the problem that ends the stream
 */
#ifndef TL_ADMIN_EVENTS_H
#define TL_ADMIN_EVENTS_H

#include "worker/admin/access.h"
#include "worker/admin/pool.h"
#include "worker/admin/stream.h"

#define TL_ADMIN_EVENTS_STREAMS_MAX 32u

struct tl_admin_events;

/* Access and pool are borrowed; the contexts of its threads must be `struct tl_admin_backend`. */
struct tl_admin_events *tl_admin_events_new(struct tl_admin_access *access,
                                            struct tl_admin_pool *pool, struct tl_error *err);
/* Ends all streams, and opens no more. */
void tl_admin_events_end(struct tl_admin_events *events);
/* After the last job has run and the last response is closed. */
void tl_admin_events_free(struct tl_admin_events **events);

/* On a thread of the pool: opens a stream, with the first numbers in it. target: of the request,
 * ".../events". NULL: the answer is a problem. The caller makes the response of it. */
struct tl_admin_stream *tl_admin_events_open(struct tl_admin_events *events,
                                             struct tl_admin_backend *backend, const char *target,
                                             const struct tl_admin_bearer *bearer,
                                             struct tl_control_answer *answer);

#endif
