/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store's clock as an admitter follows it, with its own monotonic clock beside it: tells how
 * far the store's clock has jumped forward, so that this grants no admission by rate. A process in
 * reserve follows it, too, because a jump ends all leases: the next step may be its first.
 */
#ifndef TL_STORE_CLOCK_H
#define TL_STORE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "common/store/redis.h"

/* Zeroed: nothing is known. Times in ms; "local" is the monotonic clock of this process. */
struct tl_store_clock {
    int64_t store_ms, local_ms; /* they were the same moment */
    int64_t noted_ms;           /* local, of the last answer */
    int64_t jumped_ms;          /* all jumps forward so far, added up */
    int64_t jumped_to_ms;       /* the store's clock after the last of them */
};

/* The store's clock at this local time, if it does not jump; 0: not known. */
int64_t tl_store_clock_at(const struct tl_store_clock *clock, int64_t local_ms);

/* An answer told the store's clock, to a question that was sent and answered at these local times.
 * The answer may be any part of that time old, which is no jump. */
void tl_store_clock_note(struct tl_store_clock *clock, int64_t store_ms, int64_t sent_ms,
                         int64_t received_ms);

/* Asks the store unless an answer was noted a short while ago. */
bool tl_store_clock_look(struct tl_store_clock *clock, struct tl_redis *redis, int64_t local_ms,
                         struct tl_error *err);

#endif
