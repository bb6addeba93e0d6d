/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The queues that a worker process serves, by name. Takes the changes of which the follower tells,
 * and hands the batches to the ingest thread.
 */
#ifndef TL_QUEUES_H
#define TL_QUEUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/named.h"
#include "common/store/blocks.h"
#include "worker/feed/change.h"
#include "worker/feed/ingest.h"
#include "worker/queue/queue.h"
#include "worker/report/worker_metrics.h"

/* Read everywhere, written here. Zeroed, with the first two: there is no queue yet. */
struct tl_queues {
    struct tl_queue_env
        *env; /* borrowed; `listed`, `follower_up`, `full` and the clock are kept up to date */
    uint64_t commands_max;    /* in progress; above it the environment is `full` */
    struct tl_named list;     /* of struct tl_queue; one that is troubled may have no line */
    struct tl_blocks *blocks; /* the blocked prefixes of addresses; NULL: none were ever read */
    uint64_t blocks_version;  /* counts their changes */
};

/* Frees all queues, whose pending commands are settled, and what else it holds. */
void tl_queues_clear(struct tl_queues *queues);

/* NULL: no such queue. */
struct tl_queue *tl_queues_find(const struct tl_queues *queues, const char *name);
/* Can the process serve: is the store up, is every queue known, and every line loaded? A queue
 * whose data is damaged does not count, unless all are. */
enum tl_readiness tl_queues_readiness(const struct tl_queues *queues);
/* Apart from the store: TL_READY when status and check can be answered from the lines in memory. */
enum tl_readiness tl_queues_readiness_here(const struct tl_queues *queues);
/* One line that names all troubled queues, "" for none. */
void tl_queues_troubles(const struct tl_queues *queues, char *text, size_t size);
/* Commands accepted but not yet applied, over all queues. */
size_t tl_queues_in_flight(const struct tl_queues *queues);
/* Is everything handed to the store? */
bool tl_queues_flushed(const struct tl_queues *queues);

/* What a change has done to a queue. */
struct tl_taken {
    enum {
        TL_TAKEN,           /* nothing that those need to know who wait */
        TL_TAKEN_ENTRY,     /* its line has this entry of the events stream */
        TL_TAKEN_RECREATED, /* the line is of another generation: what waits for places of the
                             * former one must end */
        TL_TAKEN_DELETED    /* it is no longer in the list: ends what waits, and is freed next */
    } kind;
    struct tl_queue *queue;
    struct tl_event_entry entry; /* the caller's to free */
};
/* Takes a change in the store, of which the follower tells. */
struct tl_taken tl_queues_take(struct tl_queues *queues, struct tl_change *change, int64_t now_ms);
/* What became of a batch on its way into the store. */
void tl_queues_batch_sent(struct tl_queues *queues, const char *name,
                          const struct tl_batch_receipt *receipt, int64_t now_ms);
/* The store's answer. */
void tl_queues_batch_checked(struct tl_queues *queues, const char *name, uint64_t number,
                             const struct tl_batch_check *check, int64_t now_ms);
/* Call at the end of each turn of the loop: hands gathered batches to the ingest thread, and says
 * whether too many commands are in progress. */
void tl_queues_flush(struct tl_queues *queues);
/* Call every tick: what queues do as time passes (tl_queue_tick); asks the store about batches
 * whose outcome is overdue; reports what came true of the waits told. */
void tl_queues_tick(struct tl_queues *queues, int64_t now_ms);
/* The process ends: sends the presence not yet sent, and a farewell if it ever sent any. From then
 * on it sends none. */
void tl_queues_farewell(struct tl_queues *queues);

#endif
