/*
 * The held requests of a worker process. They wait for the outcome of a command, or for the store's
 * answer about a place (a lookup). Each ends once: with its outcome, or at its deadline.
 *
 * A lookup may also run without a request, for an event stream whose place the line does not know.
 */
#ifndef TL_HOLDS_H
#define TL_HOLDS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/auth/ticket.h"
#include "common/base/metrics.h"
#include "worker/feed/ingest.h"
#include "worker/feed/outbox.h"
#include "worker/http/request.h"
#include "worker/queue/local_queue.h"

struct tl_holds;

/* A request that no longer waits, with what its answer needs. Valid during the callback. */
struct tl_held {
    struct tl_local_queue *queue;
    struct tl_request *request; /* to be answered now; NULL: a lookup without a request */
    struct tl_ticket ticket;    /* all zero for a join */
    int64_t since_us;           /* local monotonic time */
};

struct tl_holds_settings {
    int64_t wait_ms; /* the longest wait */
    struct tl_metrics *metrics;
    void *context; /* for the callbacks */
    /* Asks the store about the visitor at a place; tl_holds_found is called with this number. False
     * when out of memory. */
    bool (*ask)(void *context, const char *queue, const char *visitor, tl_place place,
                uint64_t number);
    /* The command has an outcome; result NULL: not in time. */
    void (*settled)(void *context, const struct tl_held *held,
                    const struct tl_pending_command *pending,
                    const struct tl_pending_result *result);
    /* The place is known now; otherwise the store could not say. */
    void (*looked_up)(void *context, const struct tl_held *held, bool known);
};

struct tl_holds *tl_holds_new(const struct tl_holds_settings *settings); /* NULL: out of memory */
/* Call when nothing is held any more. */
void tl_holds_free(struct tl_holds **holds);

/* Holds the request until the command has an outcome. ticket: of the visitor, NULL for a join.
 * False when out of memory: then the request is not held. */
bool tl_holds_command(struct tl_holds *holds, struct tl_local_queue *queue,
                      struct tl_request *request, struct tl_pending_command *pending,
                      const struct tl_ticket *ticket, int64_t now_us);
/* Asks the store about the ticket's place; a request (or NULL) is held meanwhile. False when that
 * is not possible. */
bool tl_holds_lookup(struct tl_holds *holds, struct tl_local_queue *queue,
                     struct tl_request *request, const struct tl_ticket *ticket, int64_t now_us);

/* A command has an outcome: ends all that wait for it. */
void tl_holds_settle(struct tl_holds *holds, struct tl_pending_command *pending,
                     const struct tl_pending_result *result);
/* The store's answer to a lookup. */
void tl_holds_found(struct tl_holds *holds, uint64_t number, enum tl_lookup_found found,
                    enum tl_reason reason);
/* Call every tick: ends what has reached its deadline, and lookups whose place the line has
 * learned. */
void tl_holds_tick(struct tl_holds *holds, int64_t now_ms);
/* Ends all lookups of a queue (NULL: of all queues) as failed. */
void tl_holds_drop_lookups(struct tl_holds *holds, const struct tl_local_queue *queue);

/* Requests held, and lookups in progress. */
uint64_t tl_holds_count(const struct tl_holds *holds);

#endif
