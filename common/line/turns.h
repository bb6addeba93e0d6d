/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose turn it is, between the lanes of a queue.
 *
 * Without weights a lane is served while those before it are empty. With weights the turns of a
 * lane come a stride apart, period / weight, on a clock that only admissions move: of the lanes
 * with visitors, the one whose turn is due first is served, at the same time the first lane; and
 * the clock shows that turn. A turn that passed while its lane was empty is due now, so an empty
 * lane gathers no credit. This is start-time fair queueing (P. Goyal, H. Vin, H. Cheng, 1996).
 * common/store/line/lanes.lua decides by it; here a reader follows, by nothing but how many each
 * step admitted from each lane. All numbers are whole.
 *
 * From any moment on, with nobody joining or leaving, the turns of each lane are due at fixed times
 * until it is empty. So how many are admitted before a visitor is counted lane by lane.
 */
#ifndef TL_TURNS_H
#define TL_TURNS_H

#include <stdint.h>

#include "common/wire/place.h"
#include "common/wire/weights.h"

/* Starts zeroed: no weights. */
struct tl_turns {
    struct tl_weights weights;
    uint64_t strides[TL_LANES_MAX]; /* a lane without a weight counts as weight 1 */
    uint64_t due[TL_LANES_MAX];     /* from the present time of the clock on */
};

/* From now on these weights apply. If they are others, all turns are due now. */
void tl_turns_weigh(struct tl_turns *turns, const struct tl_weights *weights);
/* Goes on from the field `turns` of the store's state, "weights:period:due,due,...", and under its
 * weights. One that is empty or damaged is no weights. */
void tl_turns_continue(struct tl_turns *turns, const char *field);
/* One step has admitted these numbers from the lanes. */
void tl_turns_admitted(struct tl_turns *turns, const uint64_t admitted[TL_LANES_MAX]);

/* How many are admitted before the visitor with `rank` waiting ahead in the lane, if nobody joins
 * or leaves; sizes: how many wait in each lane. */
uint64_t tl_turns_ahead(const struct tl_turns *turns, const uint64_t sizes[TL_LANES_MAX],
                        unsigned lane, uint64_t rank);
/* One is admitted from the lane whose turn it is. Returns that; -1: all are empty. */
int tl_turns_take(struct tl_turns *turns, const uint64_t sizes[TL_LANES_MAX]);

#endif
