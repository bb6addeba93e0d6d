/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Metrics of single queues and lanes, reported by the program that holds the lease. The first
 * `most` queues have series of their own, which end when they are removed here; the others are
 * added up under the name TL_QUEUE_METRICS_OTHER, whose counters never fall.
 *
 * One thread adds, removes and counts; another one may write at the same time.
 */
#ifndef TL_QUEUE_METRICS_H
#define TL_QUEUE_METRICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/metrics.h"
#include "common/base/text.h"
#include "common/wire/names.h"
#include "common/wire/place.h"

/* No queue can have this name. */
#define TL_QUEUE_METRICS_OTHER "_other"

/* What a program reports of a queue, and of each of its lanes. Static tables, may be empty. */
struct tl_queue_metrics_tables {
    const struct tl_metric_desc *queue;
    size_t n_queue;
    const struct tl_metric_desc *lane;
    size_t n_lane;
    bool state; /* also tellerline_queue_state, see tl_queue_series_set_state */
};

struct tl_queue_metrics;

/* Of one queue. */
struct tl_queue_series {
    struct tl_metrics *values; /* by the rows of the table `queue` */
    /* Of queue_metrics.c: */
    struct tl_queue_metrics *owner;
    char name[TL_QUEUE_NAME_MAX + 1];
    bool named;                             /* it has series of its own */
    struct tl_metrics *lanes[TL_LANES_MAX]; /* NULL: not used yet */
    char state[16];                         /* "": not known yet */
    struct tl_queue_series *next;
};

/* tables is borrowed; most: metrics.max_queues. NULL when out of memory. */
struct tl_queue_metrics *tl_queue_metrics_new(const struct tl_queue_metrics_tables *tables,
                                              uint64_t most);
/* Frees the series that are still there, too. */
void tl_queue_metrics_free(struct tl_queue_metrics **metrics);

/* Begins to report a queue, all zero. NULL when out of memory. */
struct tl_queue_series *tl_queue_metrics_add(struct tl_queue_metrics *metrics, const char *queue);
/* Ends it. A series NULL: nothing. */
void tl_queue_metrics_remove(struct tl_queue_metrics *metrics, struct tl_queue_series **series);

/* The values of a lane, by the rows of the table `lane`; it is reported from its first use on. NULL
 * when out of memory, or for a lane that cannot be. */
struct tl_metrics *tl_queue_series_lane(struct tl_queue_series *series, unsigned lane);
/* The state that the label of tellerline_queue_state tells, in 15 characters. Not reported before.
 */
void tl_queue_series_set_state(struct tl_queue_series *series, const char *state);

/* Appends all of it as Prometheus text. Each sample gets this label (`role="admitter"`), too. */
void tl_queue_metrics_write(struct tl_queue_metrics *metrics, const char *label,
                            struct tl_text *out);

#endif
