/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The held requests of a worker process. They wait for the outcome of a command, for the store's
 * answer about a place or a pending ticket (a lookup), or for an event that this process has not
 * read yet. Each ends once: with its outcome, or at its deadline.
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
#include "worker/http/refusal.h"
#include "worker/http/request.h"
#include "worker/queue/queue.h"

struct tl_holds;
struct tl_held;
struct tl_visit; /* of a request; its definition belongs to the code that handles requests */

/* What follows when the request no longer waits: it is answered, or waits again. */
typedef void tl_then(struct tl_visit *visit, const struct tl_held *held);

/* A request that waits, with what its answer needs. */
struct tl_held {
    struct tl_queue *queue;
    struct tl_request *request; /* NULL: a lookup without a request */
    struct tl_ticket ticket;    /* all zero for a first join */
    tl_then *then;
    bool give_ticket; /* a lookup: the answer carries the ticket, as that to a join */
    bool joins;       /* it asks for a new place if that of its pending ticket has ended */
    /* A lookup for a pending ticket: why the request is refused if its place has not ended. */
    enum tl_refusal_kind otherwise;
    int64_t since_us; /* local monotonic time */
    /* What has become of it: of a command, result NULL: it has no outcome in time... */
    const struct tl_pending_command *pending;
    const struct tl_pending_result *result;
    /* ...of a lookup: is the place known now, or could the store not say? And how that of a pending
     * ticket has ended (enum tl_reason), or 0. */
    bool known;
    unsigned ended;
};

/* Was the command applied? */
static inline bool tl_held_applied(const struct tl_held *held)
{
    return held->result != NULL && held->result->end == TL_PENDING_APPLIED;
}

struct tl_holds_settings {
    int64_t wait_ms;                /* the longest wait for a command or a lookup */
    const struct tl_queue_env *env; /* whose ingest thread answers lookups (tl_holds_found) */
    /* The wait is over, once for each: `then` is to follow. held is valid during the callback. */
    void (*over)(void *context, const struct tl_held *held);
    void *context;
};

struct tl_holds *tl_holds_new(const struct tl_holds_settings *settings); /* NULL: out of memory */
/* Call when nothing is held any more. */
void tl_holds_free(struct tl_holds **holds);

/* Holds the request until the command has an outcome. False when out of memory: then the request is
 * not held. */
bool tl_holds_command(struct tl_holds *holds, const struct tl_held *held,
                      struct tl_pending_command *pending);
/* Asks the store about the ticket's place; the request, if there is one, is held meanwhile. False
 * when that is not possible. */
bool tl_holds_lookup(struct tl_holds *holds, const struct tl_held *held);

/* Holds the request until its queue has read this event, at most 250 ms. False when out of memory.
 */
bool tl_holds_event(struct tl_holds *holds, const struct tl_held *held, uint64_t event);

/* A command has an outcome: ends all that wait for it. */
void tl_holds_settle(struct tl_holds *holds, struct tl_pending_command *pending,
                     const struct tl_pending_result *result);
/* The store's answer to a lookup. */
void tl_holds_found(struct tl_holds *holds, uint64_t number, enum tl_lookup_found found,
                    enum tl_reason reason);
/* Call every tick: ends what has reached its deadline, lookups whose place the line has learned,
 * and waits for an event that it has read. */
void tl_holds_tick(struct tl_holds *holds, int64_t now_ms);
/* Ends all lookups of a queue (NULL: of all queues) as failed, and all waits for its events. */
void tl_holds_drop(struct tl_holds *holds, const struct tl_queue *queue);

/* Requests held, and lookups in progress. */
uint64_t tl_holds_count(const struct tl_holds *holds);

#endif
