/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counters, gauges and latency histograms of a process, written out as Prometheus text (exposition
 * format 0.0.4). Metrics are plain 64-bit atomics in one block of memory, so any thread may update
 * them, and the block may lie in shared memory: the worker's parent process adds up the blocks of
 * its children, so that one scrape answers for all of them.
 *
 * A program declares its metrics in one const table; the index in the table is the metric's handle.
 */
#ifndef TL_METRICS_H
#define TL_METRICS_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/text.h"

enum tl_metric_type {
    TL_COUNTER,   /* only grows; summed over blocks */
    TL_GAUGE,     /* a level, may fall; summed over blocks */
    TL_GAUGE_MAX, /* a level of which the greatest over the blocks counts */
    TL_HISTOGRAM, /* latencies in microseconds, exported in seconds; bucket bounds 1-2-5 steps, 50
                     us to 10 s */
    TL_HISTOGRAM_LONG, /* waits in microseconds, exported in seconds; bounds from 1 s to 8 h */
    TL_HISTOGRAM_SIZE, /* numbers of things, exported as they are; bounds from 1 to 200,000 */
};

struct tl_metric_desc {
    const char *name; /* full Prometheus name: tellerline_joins_total, tellerline_apply_seconds */
    const char *help; /* one line */
    enum tl_metric_type type;
};

struct tl_metrics; /* one block: values for every row of one table */

/* Bytes one block takes for a table of n rows. */
size_t tl_metrics_size(const struct tl_metric_desc *table, size_t n);
/* Lays a block out in memory the caller owns (zeroed, 64-byte aligned, tl_metrics_size bytes). */
struct tl_metrics *tl_metrics_init(void *memory, const struct tl_metric_desc *table, size_t n);

/* The same in memory of its own, freed with free(). NULL when out of memory. */
struct tl_metrics *tl_metrics_new(const struct tl_metric_desc *table, size_t n);

void tl_metrics_add(struct tl_metrics *metrics, size_t handle, int64_t delta); /* counter, gauge */
void tl_metrics_set(struct tl_metrics *metrics, size_t handle, int64_t value); /* gauge */
/* Counts one value of a histogram, in microseconds, or a number. Below 0 counts as 0. */
void tl_metrics_observe(struct tl_metrics *metrics, size_t handle, int64_t value);
/* The value of a counter or gauge; the number of observations of a histogram. */
int64_t tl_metrics_get(const struct tl_metrics *metrics, size_t handle);

/* Appends every metric, added up over n_blocks blocks of the same table. Each sample gets the label
 * (`role="dispatcher"`). */
void tl_metrics_write(struct tl_metrics *const *blocks, size_t n_blocks, const char *label,
                      struct tl_text *out);

/* For metrics with a label that tells several blocks apart: # HELP and # TYPE of one row... */
void tl_metrics_write_head(const struct tl_metric_desc *row, struct tl_text *out);
/* ...and its samples, added up over n_blocks blocks (0: none are written), with these labels. */
void tl_metrics_write_samples(struct tl_metrics *const *blocks, size_t n_blocks, size_t handle,
                              const char *label, struct tl_text *out);
/* Adds the counters and histograms of a block to another one of the same table. */
void tl_metrics_add_up(struct tl_metrics *into, const struct tl_metrics *from);

#endif
