/* SPDX-License-Identifier: Apache-2.0 */
/* What the visitors of each lane met in a rehearsal. Pure computation; times as in
 * lab/figures.h. */
#ifndef TL_LAB_LANE_FIGURES_H
#define TL_LAB_LANE_FIGURES_H

#include <stdbool.h>
#include <stdint.h>

#include "lab/figures.h"
#include "lab/lanes.h"

struct tl_lane_figures {
    struct tl_lane_waits waits;
    uint64_t promises, kept; /* ranges told, and those in which the wait ended */
    int64_t told_ms;         /* the middle of the first range told, the median; -1: none */
    int64_t true_ms;         /* how long those visitors waited from then on, the median */
};

/* False when out of memory. */
bool tl_lane_figures_compute(const struct tl_rehearsal *rehearsal,
                             struct tl_lane_figures lanes[TL_LANES_MAX]);

#endif
