/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Building a line from the store in bounded steps, so that the caller can renew its leases
 * meanwhile.
 *
 * A snapshot is fuzzy but right: its head (generation, number and id of the last event) is read
 * first, the pages after it, and every event after the head is applied on top. Applying an event is
 * idempotent, so the line is exact once the tail has caught up. A reader that finds a gap in the
 * numbers loads a new snapshot; it never guesses.
 */
#ifndef TL_SNAPSHOT_H
#define TL_SNAPSHOT_H

#include <stdbool.h>

#include "common/line/line.h"
#include "common/store/keys.h"
#include "common/store/redis.h"
#include "common/store/tail.h"

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

/* All of it at once: a new line, and the head it was loaded at. NULL on failure. */
struct tl_line *tl_snapshot(struct tl_redis *redis, const struct tl_keys *keys,
                            struct tl_tail_head *head, struct tl_error *err);

#endif
