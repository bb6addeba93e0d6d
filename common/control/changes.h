/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The record of changes: who changed what, when and from where. The function that changes something
 * writes the entry in the same step (common/store/line/changes.lua), to tl:{q}:changes, or to
 * tl:changes what belongs to no queue. docs/contributors/wire-format.md describes both streams.
 */
#ifndef TL_CONTROL_CHANGES_H
#define TL_CONTROL_CHANGES_H

#include <jansson.h>

#include "common/store/keys.h"
#include "common/store/redis.h"

struct tl_control_call;

/* An entry's id in its stream and, for tl:{q}:changes, the queue: "1732320000000-0:sale". */
#define TL_CHANGES_ID_MAX    (41 + 1 + TL_QUEUE_NAME_MAX)
#define TL_CHANGES_LIMIT_MAX 1000

struct tl_changes_query {
    const char *queue;  /* of this queue only; NULL: of all queues, and of none */
    const char *before; /* only older than this id; NULL: from the newest on */
    size_t limit;       /* 1 to TL_CHANGES_LIMIT_MAX */
};

/* Reads the changes, newest first. Of all queues: those in tl:queues, and tl:changes, which has
 * those of queues that are gone; merged by time. Memory is bounded by the limit. Each is an object
 * with the fields of its entry, and its id; `queue` is "" for one of no queue. NULL with err:
 * TL_ERR_INVALID for a `before` that is no id or a limit out of range. An unknown queue has no
 * changes. */
json_t *tl_changes_list(struct tl_redis *redis, const char *key_prefix,
                        const struct tl_changes_query *query, struct tl_error *err);

/* ?queue=&before=&limit=, newest first */
void tl_handle_changes(struct tl_control_call *call);

#endif
