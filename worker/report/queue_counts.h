/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Metrics with the label `queue`: counters of single queues, in shared memory of all processes of a
 * worker. The first queues (metrics.queues) have series of their own; the others share the series
 * "_other", so that many queues do not become many series. No locks: a process can be killed
 * anywhere in it.
 */
#ifndef TL_QUEUE_COUNTS_H
#define TL_QUEUE_COUNTS_H

#include <stdint.h>

#include "common/base/error.h"
#include "common/base/text.h"

enum tl_queue_count {
    TL_QUEUE_JOINS_MANY,
    TL_QUEUE_CHECKS_FAILED,
    TL_QUEUE_FAILURES_MANY,
    TL_QUEUE_SESSIONS_SHARED,
    TL_QUEUE_SESSIONS_FAST,
    TL_QUEUE_PASSED_THROUGH,
    TL_QUEUE_BYPASSED,
    TL_QUEUE_ETA_JUDGED, /* see worker/queue/promises.h */
    TL_QUEUE_ETA_EARLY,
    TL_QUEUE_ETA_LATE,
    TL_QUEUE_ETA_ERROR,
    TL_QUEUE_COUNTS
};

/* The name of the others; no queue can have it. */
#define TL_QUEUE_COUNTS_OTHER "_other"

struct tl_queue_counts;

/* named: so many queues have series of their own. Must be made before forking. NULL with
 * TL_ERR_SYSTEM. */
struct tl_queue_counts *tl_queue_counts_new(uint64_t named, struct tl_error *err);
void tl_queue_counts_free(struct tl_queue_counts **counts); /* NULL allowed */

/* A hash of the queue's name; two names may have the same. */
uint32_t tl_queue_counts_stream(const char *queue);
/* Counts so many. counts NULL: nothing is counted. */
void tl_queue_counts_add_many(struct tl_queue_counts *counts, const char *queue, uint32_t stream,
                              enum tl_queue_count kind, uint64_t n);
/* Counts one. */
void tl_queue_counts_add(struct tl_queue_counts *counts, const char *queue, uint32_t stream,
                         enum tl_queue_count kind);
/* Appends them as Prometheus text, each sample with this label (`role="worker"`) too. */
void tl_queue_counts_write(const struct tl_queue_counts *counts, const char *label,
                           struct tl_text *out);

#endif
