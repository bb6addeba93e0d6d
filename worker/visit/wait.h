/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The held requests of a worker process. They wait for the outcome of a command, for the store's
 * answer about a place or a pending ticket (a lookup), or for an event that this process has not
 * read yet. Each ends once: with its outcome, or at its deadline.
 *
 * A lookup may also run without a request, for an event stream whose place the line does not know.
 */
#ifndef TL_WAIT_H
#define TL_WAIT_H

#include <stdbool.h>
#include <stdint.h>

#include "common/auth/ticket.h"
#include "common/base/metrics.h"
#include "worker/feed/ingest.h"
#include "worker/feed/outbox.h"
#include "worker/http/refusal.h"
#include "worker/http/request.h"
#include "worker/http/router.h"
#include "worker/queue/queue.h"

struct tl_holds;
/* A request that waits, for one thing at a time. Part of its visit. */
struct tl_wait {
    struct tl_queue *queue;
    struct tl_request *request;     /* NULL: a lookup without a request */
    const struct tl_ticket *ticket; /* of a lookup */
    tl_step *then;                  /* what follows */
    int64_t since_us;               /* local monotonic time */
    bool give_ticket;               /* a lookup: the answer carries the ticket, as that to a join */
    bool joins; /* it asks for a new place if that of its pending ticket has ended */
    /* A lookup for a pending ticket: why the request is refused if its place has not ended. */
    enum tl_refusal_kind otherwise;
    /* What has become of it: of a command, result NULL: it has no outcome in time... */
    struct tl_pending_command *pending;
    const struct tl_pending_result *result;
    /* ...of a lookup: is the place known now, or could the store not say? And how that of a pending
     * ticket has ended (enum tl_reason), or 0. */
    bool known;
    unsigned ended;
    /* Of the holds alone. */
    struct tl_wait *prev, *next; /* in its list, the earliest deadline first */
    struct tl_wait *next_waiter; /* of the same command */
    int64_t deadline_ms;
    uint64_t number; /* of a lookup */
    bool behind;     /* a lookup: the store knows the place, the line does not yet */
    uint64_t event;  /* which it waits for */
};

/* Was the command applied? */
static inline bool tl_wait_applied(const struct tl_wait *wait)
{
    return wait->result != NULL && wait->result->end == TL_PENDING_APPLIED;
}

struct tl_holds_settings {
    int64_t wait_ms;                /* the longest wait for a command or a lookup */
    const struct tl_queue_env *env; /* whose ingest thread answers lookups (tl_holds_found) */
    /* The wait is over, once for each: `then` is to follow. */
    void (*over)(struct tl_wait *wait);
};

struct tl_holds *tl_holds_new(const struct tl_holds_settings *settings); /* NULL: out of memory */
/* Call when nothing is held any more. */
void tl_holds_free(struct tl_holds **holds);

/* A wait begins zeroed but for the first members, up to `otherwise`, and lasts until it is over. */

/* Holds the request until the command has an outcome. */
void tl_holds_command(struct tl_holds *holds, struct tl_wait *wait,
                      struct tl_pending_command *pending);
/* Asks the store about the ticket's place; the request, if there is one, is held meanwhile. False
 * when that is not possible. */
bool tl_holds_lookup(struct tl_holds *holds, struct tl_wait *wait);
/* Holds the request until its queue has read this event, at most 250 ms. */
void tl_holds_event(struct tl_holds *holds, struct tl_wait *wait, uint64_t event);

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
