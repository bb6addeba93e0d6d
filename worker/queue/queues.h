/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The queues that a worker process serves, by name, each with its subscribers. Takes the changes of
 * which the follower tells, and hands the batches to the ingest thread.
 */
#ifndef TL_QUEUES_H
#define TL_QUEUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "worker/feed/change.h"
#include "worker/feed/ingest.h"
#include "worker/queue/queue.h"
#include "worker/queue/subscribers.h"
#include "worker/report/slot.h"

struct tl_queues;

struct tl_queues_settings {
    struct tl_queue_env
        *env;              /* `listed`, `follower_up`, `full` and the clock are kept up to date */
    uint64_t commands_max; /* in progress; above it the environment is `full` */
    struct tl_subscribers_settings subscribers;
};

/* Everything in the settings must outlive the queues. NULL when out of memory. */
struct tl_queues *tl_queues_new(const struct tl_queues_settings *settings);
/* Frees all queues: their subscribers and pending commands get their last answers. */
void tl_queues_free(struct tl_queues **queues);
void tl_queues_clear(struct tl_queues *queues);

/* The blocked prefixes of addresses, or NULL. */
const struct tl_blocks *tl_queues_blocks(const struct tl_queues *queues);
/* NULL: no such queue. */
struct tl_queue *tl_queues_find(const struct tl_queues *queues, const char *name);
/* Can the process serve: is the store up, is every queue known, and every line loaded? A queue
 * whose data is damaged does not count, unless all are. */
enum tl_readiness tl_queues_readiness(const struct tl_queues *queues);
/* Apart from the store: TL_READY when status and check can be answered from the lines in memory. */
enum tl_readiness tl_queues_readiness_here(const struct tl_queues *queues);
/* Is the data of this queue damaged, so that it is not followed? */
bool tl_queues_troubled(const struct tl_queues *queues, const char *name);
/* One line that names all such queues, "" for none. */
void tl_queues_troubles(const struct tl_queues *queues, char *text, size_t size);
/* Commands accepted but not yet applied, over all queues. */
size_t tl_queues_in_flight(const struct tl_queues *queues);
/* Is everything handed to the store, and has every subscriber gone? */
bool tl_queues_drained(const struct tl_queues *queues);

/* Takes a change in the store, of which the follower tells (struct tl_follower_settings). */
void tl_queues_take(void *queues, struct tl_change *change);
/* What became of a batch on its way into the store. */
void tl_queues_batch_sent(struct tl_queues *queues, const char *name,
                          const struct tl_batch_receipt *receipt, int64_t now_ms);
/* Call every tick: asks the store about batches whose outcome is overdue. */
void tl_queues_check(struct tl_queues *queues, int64_t now_ms);
/* The store's answer. */
void tl_queues_batch_checked(struct tl_queues *queues, const char *name, uint64_t number,
                             const struct tl_batch_check *check, int64_t now_ms);
/* Call at the end of each turn of the loop: hands gathered batches to the ingest thread, and says
 * whether too many commands are in progress. */
void tl_queues_flush(struct tl_queues *queues);
/* Call every tick: sends what came true of the waits told, for a queue every ten seconds at most.
 */
void tl_queues_report(struct tl_queues *queues, int64_t now_ms);
/* Call every tick. */
void tl_queues_tick(struct tl_queues *queues, int64_t now_ms);
/* Call every few ms: serves the subscribers that are due. */
void tl_queues_sweep(struct tl_queues *queues, int64_t now_ms);
/* Ends all subscriptions, spread over the time until until_ms. */
void tl_queues_drain(struct tl_queues *queues, int64_t now_ms, int64_t until_ms);

#endif
