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

#include <uv.h>

#include "common/auth/ticket.h"
#include "common/base/metrics.h"
#include "worker/http/clients.h"
#include "worker/http/request.h"
#include "worker/queue/queues.h"
#include "worker/queue/telling.h"

struct tl_subscribers;

struct tl_subscribers_settings {
    uv_loop_t *loop;
    const struct tl_queues *queues; /* whose blocked prefixes count */
    struct tl_metrics *metrics;
    struct tl_clients *clients; /* in which the streams and long polls of an address are counted */
    uint64_t per_ticket;        /* streams and long polls of one ticket, 0: no limit */
    void *context;              /* for the callbacks */
    struct tl_telling telling;
    /* Answers a request that has waited, with the view of the ticket's place. */
    void (*answer)(void *context, struct tl_queue *queue, struct tl_request *request,
                   const struct tl_ticket *ticket, bool give_ticket);
    /* Refuses a request that has waited: its address is blocked now, or else the queue is deleted
     * or the process stops. */
    void (*refuse)(void *context, struct tl_queue *queue, struct tl_request *request, bool blocked);
    /* Asks for the number of a pending place; the outcome comes as tl_subscribers_numbered. */
    void (*ask_number)(void *context, struct tl_queue *queue, const struct tl_ticket *ticket);
    /* Asks the store about a place; the queue remembers the answer. */
    void (*ask_place)(void *context, struct tl_queue *queue, const struct tl_ticket *ticket);
};

/* What the settings point to must outlive the subscribers. NULL when out of memory. */
struct tl_subscribers *tl_subscribers_new(const struct tl_subscribers_settings *settings);
/* Ends all streams of a queue (NULL: of all queues), and refuses all requests that wait. */
void tl_subscribers_end(struct tl_subscribers *subscribers, const struct tl_queue *queue);
/* Likewise of all. */
void tl_subscribers_free(struct tl_subscribers **subscribers);

/* Turns the request into an event stream of the ticket's visitor, and sends the first event if
 * the place is known or pending. A ticket that has per_ticket of them loses its oldest stream.
 * client: whose streams are counted and may be blocked; NULL: nobody's. language: a BCP 47 code
 * that lasts as long as the process, or NULL. False when out of memory: then the request is still
 * to be answered. */
bool tl_subscribers_stream(struct tl_subscribers *subscribers, struct tl_queue *queue,
                           struct tl_request *request, const struct tl_ticket *ticket,
                           const struct tl_address *client, const char *language, int64_t now_ms);
/* Holds the request until the ticket's place changes, or until deadline_ms, and answers it with the
 * view. The place must be known. False when the ticket has per_ticket already, or when out of
 * memory. */
bool tl_subscribers_wait(struct tl_subscribers *subscribers, struct tl_queue *queue,
                         struct tl_request *request, const struct tl_ticket *ticket,
                         const struct tl_address *client, int64_t now_ms, int64_t deadline_ms);
/* Holds a join that is about to be admitted until it is, so that the answer says "active" at once;
 * for a quarter of a second at most. The answer carries the ticket. */
bool tl_subscribers_wait_for_admission(struct tl_subscribers *subscribers, struct tl_queue *queue,
                                       struct tl_request *request, const struct tl_ticket *ticket,
                                       int64_t now_ms);

/* The line has taken an entry: tells the subscribers concerned. */
void tl_subscribers_entry(struct tl_subscribers *subscribers, const struct tl_queue *queue,
                          const struct tl_event_entry *entry, int64_t now_ms);
/* The store has answered about this place: tells its subscribers. */
void tl_subscribers_look(struct tl_subscribers *subscribers, const struct tl_queue *queue,
                         tl_place place, int64_t now_ms);
/* The pending place of this visitor has a number now. */
void tl_subscribers_numbered(struct tl_subscribers *subscribers, const struct tl_queue *queue,
                             const char *visitor, tl_place place, int64_t now_ms);
/* The line is full: the join of this pending visitor was refused. Tells the streams, which ask
 * again after wait_ms. */
void tl_subscribers_full(struct tl_subscribers *subscribers, const struct tl_queue *queue,
                         const char *visitor, int64_t wait_ms, int64_t now_ms);
/* The join that this visitor's pending ticket, issued at this Unix time, repeats was refused: asks
 * whether the place has ended (ask_place). */
void tl_subscribers_spent(struct tl_subscribers *subscribers, const struct tl_queue *queue,
                          const char *visitor, uint32_t issued, int64_t now_ms);
/* The place of this pending ticket has ended; reason: enum tl_reason, 0: it is not known how. */
void tl_subscribers_over(struct tl_subscribers *subscribers, const struct tl_queue *queue,
                         const struct tl_ticket *ticket, unsigned reason, int64_t now_ms);
/* The queue has a line of another generation: ends all subscriptions to places of the former one,
 * except streams whose place may come back.
 * Those without a number stay. */
void tl_subscribers_recreated(struct tl_subscribers *subscribers, const struct tl_queue *queue,
                              int64_t now_ms);
/* Call every few ms: serves the subscribers that are due, so that each has a turn within half a
 * second. */
void tl_subscribers_sweep(struct tl_subscribers *subscribers, int64_t now_ms);
/* From now on ends all subscriptions, spread over the time until until_ms; clients reconnect to
 * another worker. */
void tl_subscribers_drain(struct tl_subscribers *subscribers, int64_t now_ms, int64_t until_ms);

/* Streams and waiting requests. */
size_t tl_subscribers_count(const struct tl_subscribers *subscribers);

#endif
