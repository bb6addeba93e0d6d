/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers that are made while they are sent, on the thread of their connection. Thread-safe.
 *
 * Events: the numbers of a queue, once a second. The streams of one queue share one reading. A
 * stream ends when its bearer's token or session does, and when the queue is deleted.
 *
 *   event: stats     data: the answer of GET .../stats
 *   event: problem   data: the problem that the reading got; the stream goes on
 *   event: end       data: the problem that ends the stream
 *
 * Exports: all visitors of a queue, a page at a time as the client reads: in bounded memory. Each
 * has connections to the store of its own; only a few run at once.
 */
#ifndef TL_ADMIN_STREAMS_H
#define TL_ADMIN_STREAMS_H

#include <microhttpd.h>

#include "common/config/settings.h"
#include "worker/admin/access.h"
#include "worker/admin/backend.h"

/* Events, and exports, at once. */
#define TL_ADMIN_EVENTS_MAX  32u
#define TL_ADMIN_EXPORTS_MAX 2u

struct tl_admin_streams;

/* All of it is borrowed. */
struct tl_admin_streams *tl_admin_streams_new(const struct tl_config *config,
                                              struct tl_admin_access *access,
                                              struct tl_admin_backends *backends,
                                              struct tl_error *err);
/* Ends the events, breaks the exports off, and begins no more. */
void tl_admin_streams_end(struct tl_admin_streams *streams);
/* After the last response is closed. NULL allowed. */
void tl_admin_streams_free(struct tl_admin_streams **streams);

/* The response of a stream of events, with the first numbers in it. target: of the request,
 * ".../events". NULL: the answer is a problem. The caller adds headers, queues and destroys it. */
struct MHD_Response *tl_admin_events_open(struct tl_admin_streams *streams,
                                          struct tl_control *control,
                                          struct MHD_Connection *connection, const char *target,
                                          const struct tl_admin_bearer *bearer,
                                          struct tl_control_answer *answer);
/* The same for an export. type: its Content-Type, static. */
struct MHD_Response *tl_admin_export_open(struct tl_admin_streams *streams,
                                          struct MHD_Connection *connection,
                                          const struct tl_control_request *request,
                                          const char **type, struct tl_control_answer *answer);

#endif
