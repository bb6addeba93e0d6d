/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The queues that the follower's thread knows: which there are, their settings and generations, and
 * how far their events have been read. Posts every change of them to a mailbox, in order. A queue
 * whose data is damaged is set aside and does not stop the others. Belongs to one thread.
 */
#ifndef TL_FOLLOWED_QUEUES_H
#define TL_FOLLOWED_QUEUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/config/config.h"
#include "common/store/store.h"
#include "worker/feed/change.h"
#include "worker/feed/mailbox.h"

struct tl_followed_queues;

/* Borrows all of it for its life; config names the queues to create. compares: logs, when a queue
 * is read first, where the file and the store differ; for one of the processes of a worker, so that
 * it is said once. NULL when out of memory. */
struct tl_followed_queues *tl_followed_queues_new(struct tl_store *store, const char *key_prefix,
                                                  const struct tl_config *config,
                                                  struct tl_mailbox *changes, bool compares);
void tl_followed_queues_free(struct tl_followed_queues **queues);

/* The connection is a new one, perhaps to another store: the next update creates the configured
 * queues that are missing, checks all queues, and tries those that are set aside. False when the
 * store cannot keep the durability that is configured. */
bool tl_followed_queues_reconnected(struct tl_followed_queues *queues, struct tl_error *err);
/* Once a second: finds queues that were created, deleted or replaced, those whose store lost part
 * of its history, and settings that were changed by hand. With many queues, each call checks the
 * next few. */
bool tl_followed_queues_update(struct tl_followed_queues *queues, struct tl_error *err);
/* Were the lines of all queues posted, those of the configuration included, but for queues that are
 * set aside or that an operator deleted? */
bool tl_followed_queues_loaded(const struct tl_followed_queues *queues);

/* The next serve builds a new line of this queue, or of all queues (NULL). */
void tl_followed_queues_rebuild(struct tl_followed_queues *queues, const char *queue);
/* The next serve reads the settings of this queue. */
void tl_followed_queues_reload(struct tl_followed_queues *queues, const char *queue);
bool tl_followed_queues_serve(struct tl_followed_queues *queues, struct tl_error *err);

/* Waits up to block_ms for events and, until they are as durable as is configured, up to a second
 * more; then posts them. One wait serves all that have come. Returns immediately when it follows no
 * queue. *entries gets how many came. */
bool tl_followed_queues_read(struct tl_followed_queues *queues, int64_t block_ms, size_t *entries,
                             struct tl_error *err);
/* The number of queues whose events are followed. */
size_t tl_followed_queues_count(const struct tl_followed_queues *queues);

/* When to rebuild a line of this size after a new incarnation of the store; random: any number. All
 * workers find it in the same moment, and each reads the whole line. The store takes up to 0.6 us
 * for a visitor (measured: 0.58 s for a million with gaps between all of them, 4.4 ms for 10,000;
 * 0.045 s for a million without gaps). In lines from TL_STAGGER_SIZE visitors on, each worker
 * therefore waits a random part of 5 us for each visitor, at most TL_STAGGER_MS: workers for whom
 * that is enough take turns, and others share the store with the commands of visitors.
 *
 * The bound: a line of 10,000 is never late, and a million listeners are told 5 seconds later at
 * most, of the minute in which they must be back in order. Meanwhile positions are those from
 * before. */
#define TL_STAGGER_SIZE   20000 /* a smaller line costs the store about 10 ms */
#define TL_STAGGER_MS     5000  /* as long as a line of a million */
#define TL_STAGGER_PER_MS 200
static inline int64_t tl_stagger_until(int64_t now_ms, uint64_t size, uint32_t random)
{
    const uint64_t ms = size / TL_STAGGER_PER_MS, most_ms = ms < TL_STAGGER_MS ? ms : TL_STAGGER_MS;
    return size < TL_STAGGER_SIZE ? now_ms : now_ms + (int64_t)(most_ms * random >> 32);
}

#endif
