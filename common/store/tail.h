/* SPDX-License-Identifier: Apache-2.0 */
/* Following the events of many queues (common/store/streams.h). */
#ifndef TL_TAIL_H
#define TL_TAIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/store/keys.h"
#include "common/store/state.h"
#include "common/store/store.h"

struct tl_tail;

/* Called for each entry, in order. payload is borrowed for the call. Returns false to stop
 * following this queue until the next tl_tail_follow, for instance after a gap. */
typedef bool tl_tail_handler(void *context, const struct tl_keys *keys, const void *payload,
                             size_t length);

struct tl_tail *tl_tail_new(tl_tail_handler *handler, void *context);
void tl_tail_free(struct tl_tail **tail);

/* Called with the connection that has just read entries, some of them of this queue, before they
 * are passed to the handler. On false the read fails, and the next one reads the same entries
 * again.
 */
typedef bool tl_tail_gate(void *context, struct tl_redis *redis, const struct tl_keys *keys,
                          struct tl_error *err);
void tl_tail_set_gate(struct tl_tail *tail, tl_tail_gate *gate, void *context);

/* The end of a queue's events. */
struct tl_tail_head {
    uint64_t generation;
    uint64_t event;
    uint64_t seq;       /* the last one used */
    char id[48];        /* stream id of the last entry; "0-0" if there is none */
    uint64_t base_seq;  /* tells one incarnation from another; 0 in queues of an older release */
    uint64_t found_seq; /* the last one that the store knew when the incarnation began; or 0 */
    struct tl_turns_state turns; /* as of `event` */
};
/* TL_ERR_NOQUEUE when the queue does not exist. */
bool tl_tail_head(struct tl_redis *redis, const struct tl_keys *keys, struct tl_tail_head *head,
                  struct tl_error *err);

/* Follows a queue from the entry after head (replacing an earlier position). keys is borrowed until
 * forget. */
bool tl_tail_follow(struct tl_tail *tail, const struct tl_keys *keys,
                    const struct tl_tail_head *head, struct tl_error *err);
void tl_tail_forget(struct tl_tail *tail, const struct tl_keys *keys);
/* Is the queue followed, and not stopped by the handler or by a key that is no stream? */
bool tl_tail_follows(const struct tl_tail *tail, const struct tl_keys *keys);
/* How many queues are followed or stopped. */
size_t tl_tail_count(const struct tl_tail *tail);

/* Waits up to block_ms (0: does not wait) for entries of any followed queue and passes them to the
 * handler. One command reads all queues, so those whose key is no stream are stopped. Returns at
 * once when no queue is followed. *entries (may be NULL) gets their number. In a cluster, a node
 * that cannot be read is no error: its queues are read again later. */
bool tl_tail_read(struct tl_tail *tail, struct tl_store *store, int64_t block_ms, size_t *entries,
                  struct tl_error *err);
/* The same for the only connection of a store. */
bool tl_tail_read_one(struct tl_tail *tail, struct tl_redis *redis, int64_t block_ms,
                      size_t *entries, struct tl_error *err);

#endif
