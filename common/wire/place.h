/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A place in line is one number: lane * 2^48 + seq. It is the score in the waiting Sorted Set
 * (exact in a double up to lane 31), so a smaller place is always served first. seq counts the
 * joins of a queue, over all lanes. It begins at a base that depends on the time at which the queue
 * was created, or found again by another incarnation of the store; so no seq is used twice, not
 * even by another generation.
 */
#ifndef TL_PLACE_H
#define TL_PLACE_H

#include <stddef.h>
#include <stdint.h>

#include "generated/protocol.h"

#define TL_PLACE_SEQ_BITS 48
#define TL_PLACE_SEQ_MAX  ((UINT64_C(1) << TL_PLACE_SEQ_BITS) - 1)
#define TL_PLACE_MAX      ((((tl_place)TL_LANES_MAX) << TL_PLACE_SEQ_BITS) - 1)

typedef uint64_t tl_place; /* 0 means: no place */

static inline tl_place tl_place_make(unsigned lane, uint64_t seq)
{
    return ((tl_place)lane << TL_PLACE_SEQ_BITS) | (seq & TL_PLACE_SEQ_MAX);
}

static inline unsigned tl_place_lane(tl_place place)
{
    return (unsigned)(place >> TL_PLACE_SEQ_BITS);
}

static inline uint64_t tl_place_seq(tl_place place)
{
    return place & TL_PLACE_SEQ_MAX;
}

/* Ascending numbers in a short form: each run has `count` of them from `first` on. */
struct tl_run {
    uint64_t first, count;
};

struct tl_runs {
    size_t n;
    struct tl_run *runs;
};

#endif
