/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a worker process sees at each queue until it reports: joins and failed checks by network,
 * and sessions that look misused. Of 64 queues at a time, in fixed memory.
 */
#ifndef TL_TALLIES_H
#define TL_TALLIES_H

#include <stddef.h>
#include <stdint.h>

#include "common/wire/names.h"
#include "worker/report/hitters.h"

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
