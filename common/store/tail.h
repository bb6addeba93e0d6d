/*
 * Following the events streams of many queues over one blocking connection, and building lines from
 * snapshots.
 *
 * A snapshot is fuzzy but right: its head (generation, number and id of the last event) is read
 * first, the pages after it, and every event after the head is applied on top; applying is
 * idempotent, so the line is exact once the tail has caught up. A reader that finds a gap in the
 * numbers rebuilds; it never guesses.
 */
#ifndef TL_TAIL_H
#define TL_TAIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/line/line.h"
#include "common/store/keys.h"
#include "common/store/redis.h"

struct tl_tail;

/* Called for each entry, in order. payload is borrowed for the call. Return false to stop following
 * this queue until tl_tail_follow is called for it again (a gap was found, say). */
typedef bool tl_tail_handler(void *context, const struct tl_keys *keys, const void *payload,
                             size_t length);

struct tl_tail *tl_tail_new(tl_tail_handler *handler, void *context);
void tl_tail_free(struct tl_tail **tail);

/* Where a queue's events stand. */
struct tl_tail_head {
    uint64_t generation;
    uint64_t event;
    char id[48]; /* stream id of the last entry; "0-0" if there is none */
};
/* TL_ERR_NOQUEUE when the queue does not exist. */
bool tl_tail_head(struct tl_redis *redis, const struct tl_keys *keys, struct tl_tail_head *head,
                  struct tl_error *err);

/* Follows a queue from the entry after head (replacing an earlier position). keys is borrowed until
 * forget. */
bool tl_tail_follow(struct tl_tail *tail, const struct tl_keys *keys,
                    const struct tl_tail_head *head, struct tl_error *err);
void tl_tail_forget(struct tl_tail *tail, const struct tl_keys *keys);
size_t tl_tail_count(const struct tl_tail *tail);

/* Waits up to block_ms (0: not at all) for entries of any followed queue and hands them to the
 * handler. With no queue followed, returns at once. *entries (may be NULL) gets how many there
 * were. */
bool tl_tail_read(struct tl_tail *tail, struct tl_redis *redis, int64_t block_ms, size_t *entries,
                  struct tl_error *err);

/* Building a line from the store in bounded steps, so that whoever does it can keep its leases
 * meanwhile. */
struct tl_snapshot;

/* Reads the head and starts. keys is borrowed. NULL on failure. */
struct tl_snapshot *tl_snapshot_begin(struct tl_redis *redis, const struct tl_keys *keys,
                                      struct tl_error *err);
/* Loads one page, at most about 2 ms of the store's time. *done is set when the line is complete. A
 * failure may leave the connection closed. */
bool tl_snapshot_step(struct tl_snapshot *snapshot, struct tl_redis *redis, bool *done,
                      struct tl_error *err);
/* Frees the snapshot and hands over its line and head (follow from there). */
struct tl_line *tl_snapshot_finish(struct tl_snapshot **snapshot, struct tl_tail_head *head);
void tl_snapshot_abandon(struct tl_snapshot **snapshot);

/* All of it at once: a new line, and the head it stands on. NULL on failure. */
struct tl_line *tl_snapshot(struct tl_redis *redis, const struct tl_keys *keys,
                            struct tl_tail_head *head, struct tl_error *err);

#endif
