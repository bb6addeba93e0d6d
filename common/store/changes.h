/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The record of changes: who changed what, when and from where. The function that changes something
 * writes the entry in the same step (common/store/line/changes.lua), to tl:{q}:changes, or to
 * tl:changes what belongs to no queue. docs/contributors/wire-format.md describes both streams.
 */
#ifndef TL_CHANGES_H
#define TL_CHANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/store/keys.h"
#include "common/store/redis.h"

/* An entry's id in its stream and, for tl:{q}:changes, the queue: "1732320000000-0:sale". */
#define TL_CHANGES_ID_MAX    (41 + 1 + TL_QUEUE_NAME_MAX)
#define TL_CHANGES_LIMIT_MAX 1000

/* One change. All texts are borrowed for the call. */
struct tl_changes_entry {
    char id[TL_CHANGES_ID_MAX + 1];
    const char *queue; /* "": of no queue */
    int64_t at_ms;     /* the store's clock */
    const char *who, *from;
    const char *what;           /* create, set, mode, notice, remove, move, recover, draw, ... */
    const char *before, *after; /* JSON objects: of the members that changed, old and new */
};

/* Called for each change; false ends the reading, with err set. */
typedef bool (*tl_changes_callback)(void *context, const struct tl_changes_entry *change,
                                    struct tl_error *err);

struct tl_changes_query {
    const char *queue;  /* of this queue only; NULL: of all queues, and of none */
    const char *before; /* only older than this id; NULL: from the newest on */
    size_t limit;       /* 1 to TL_CHANGES_LIMIT_MAX */
};

/* Reads the changes, newest first. Of all queues: those in tl:queues, and tl:changes, which has
 * those of queues that are gone; merged by time. Memory is bounded by the limit. TL_ERR_INVALID for
 * a `before` that is no id or a limit out of range. An unknown queue has no changes. */
bool tl_changes_read(struct tl_redis *redis, const char *key_prefix,
                     const struct tl_changes_query *query, tl_changes_callback callback,
                     void *context, struct tl_error *err);

#endif
