/* SPDX-License-Identifier: Apache-2.0 */
/* What the estimate is judged on. */
#ifndef TL_BENCH_SCENARIOS_H
#define TL_BENCH_SCENARIOS_H

#include "bench/eta/bank.h"
#include "bench/eta/crowd.h"

enum { FOLDS = 4 };

/* The bank's customers, at their own distances but faster, before so few counters that long lines
 * form. One quarter of them (`fold`) is judged, and comes last: with services drawn from that
 * quarter again for each seed. The other three quarters come before it, as they were. */
void scenario_bank(const struct bank *bank, unsigned fold, uint64_t seed, struct outcome *outcome);
/* An opening: many at once, with every session beginning together; visitors who lose patience,
 * no-shows, a pause; sessions of several kinds. */
void scenario_crowd(const struct bank *bank, uint64_t seed, struct outcome *outcome);
/* Capacity 20 -> 5 -> 20 in a line that is busy all the time. */
void scenario_steps(uint64_t seed, struct outcome *outcome);

#endif
