/* SPDX-License-Identifier: Apache-2.0 */
/* The lanes of a crowd: who comes in which, and what it met there. Pure computation. */
#ifndef TL_LAB_LANES_H
#define TL_LAB_LANES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/wire/names.h"
#include "common/wire/place.h"
#include "common/wire/weights.h"

/* The lanes of a queue. */
struct tl_plan_lanes {
    size_t n; /* at least 1 */
    char names[TL_LANES_MAX][TL_LANE_NAME_MAX + 1];
    struct tl_weights weights; /* none, or one for each lane */
    unsigned standard;         /* the lane of those for whom none is named */
};

/* Reads "vip=10%,press=0.05": the share of the visitors in each lane; the others come in the
 * standard lane. NULL: all do. TL_ERR_INVALID when a lane is not one of the queue's, is named
 * twice, or the shares are more than everybody. */
bool tl_plan_lanes_shares(const char *text, const struct tl_plan_lanes *lanes,
                          double shares[TL_LANES_MAX], struct tl_error *err);

/* What the visitors of one lane met. */
struct tl_lane_waits {
    uint64_t arrived;
    uint64_t admitted; /* of those who had not given up */
    int64_t median_ms; /* of their waits; -1: nobody was admitted */
    int64_t most_ms;   /* nine in ten waited no longer */
    uint64_t passed;   /* the most visitors of other lanes admitted in a row while it had some */
};

/* Sets admitted, median_ms and most_ms; sorts the waits. */
void tl_lane_waits_sum(struct tl_lane_waits *lane, int64_t *waits_ms, size_t n);

/* Was the lane passed by ten times as often as its weight allows? Lanes without weights count as
 * lanes of equal weights. */
bool tl_lane_starved(const struct tl_plan_lanes *lanes, unsigned lane,
                     const struct tl_lane_waits *waits);

#endif
