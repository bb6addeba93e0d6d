/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is counted by queue.
 *
 * Metrics with the label `queue`: counters of single queues, in shared memory of all processes of a
 * worker. The first queues (metrics.max_queues) have series of their own; the others share the
 * series
 * "_other", so that many queues do not become many series. No locks: a process can be killed
 * anywhere in it.
 *
 * Tallies: what one process sees at each queue until it reports: joins and failed checks by
 * network, and sessions that look misused. Of 64 queues at a time, in fixed memory.
 */
#ifndef TL_QUEUE_COUNTS_H
#define TL_QUEUE_COUNTS_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/base/net.h"
#include "common/base/text.h"
#include "common/wire/names.h"

enum tl_queue_count {
#define COUNT(handle, name, help) handle,
#include "worker/report/queue_counts.def"
#undef COUNT
    TL_QUEUE_COUNTS
};

/* The name of the others; no queue can have it. */
#define TL_QUEUE_COUNTS_OTHER "_other"

struct tl_queue_counts;

/* named: this many queues have their own series. Must be made before forking. NULL with
 * TL_ERR_SYSTEM. */
struct tl_queue_counts *tl_queue_counts_new(uint64_t named, struct tl_error *err);
void tl_queue_counts_free(struct tl_queue_counts **counts); /* NULL allowed */

/* A hash of the queue's name; two names may have the same. */
uint32_t tl_queue_counts_stream(const char *queue);
/* Counts n. counts NULL: nothing is counted. */
void tl_queue_counts_add(struct tl_queue_counts *counts, const char *queue, uint32_t stream,
                         enum tl_queue_count kind, uint64_t n);
/* Appends them as Prometheus text, each sample with this label (`role="worker"`) too. */
void tl_queue_counts_write(const struct tl_queue_counts *counts, const char *label,
                           struct tl_text *out);

/* ---- tallies ---- */

/*
 * Which networks send most: counts for the most frequent ones of a stream, in fixed memory.
 *
 * The space-saving sketch (A. Metwally, D. Agrawal, A. El Abbadi: Efficient computation of frequent
 * and top-k elements in data streams, ICDT 2005). A network that sent more than 1/TL_HITTERS of all
 * is among the counters, whatever the others are. Counts are of the current minute.
 */
enum { TL_HITTERS = 32, TL_HITTERS_WINDOW_MS = 60000 };

struct tl_hitter {
    struct tl_prefix prefix;
    uint32_t stream; /* of which stream: a hash of its name */
    uint32_t count;  /* at most this many too many: */
    uint32_t error;
};

/* A zeroed one is empty. */
struct tl_hitters {
    int64_t window_ms; /* when the minute began */
    uint64_t total;    /* of all in this minute */
    size_t n;
    struct tl_hitter list[TL_HITTERS];
};

/* Counts one. Returns how many this network sent to this stream in this minute, at least. now_ms:
 * local monotonic time. */
uint32_t tl_hitters_add(struct tl_hitters *hitters, const struct tl_prefix *prefix, uint32_t stream,
                        int64_t now_ms);

enum { TL_TALLIES = 64 };

struct tl_tally {
    char queue[TL_QUEUE_NAME_MAX + 1];
    uint32_t stream; /* the queue's, for the hitters; two queues may have the same */
    uint64_t failed, shared, fast;
    struct tl_hitters joins, failures;
};

/* A zeroed one is empty. */
struct tl_tallies {
    size_t n;
    struct tl_tally list[TL_TALLIES];
};

/* The tally of this queue, a new one if it has none. NULL: there are 64 others. */
struct tl_tally *tl_tallies_of(struct tl_tallies *tallies, const char *queue, uint32_t stream);

#endif
