/* SPDX-License-Identifier: Apache-2.0 */
/* What others tell about a wait. Each rate comes with the range of a Poisson process. */
#ifndef TL_BENCH_BASELINES_H
#define TL_BENCH_BASELINES_H

#include "bench/eta/crowd.h"

struct baselines {
    double admitted, time_ms; /* exponentially weighted */
    double sessions, sessions_ms;
    double constant_ms;
    uint64_t capacity;
    int64_t now_ms;
    bool waiting;
};

/* Lets time pass; waiting: may admissions be expected from now on? */
void baselines_pass(struct baselines *baselines, int64_t now_ms, bool waiting);
void baselines_admitted(struct baselines *baselines);
void baselines_ended(struct baselines *baselines, int64_t session_ms);
/* False while one of them knows nothing. */
bool baselines_tell(const struct baselines *baselines, uint64_t position, struct told told[WAYS]);

#endif
