/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "bench/eta/baselines.h"

static const double half_life_ms = 120e3;

void baselines_pass(struct baselines *baselines, int64_t now_ms, bool waiting)
{
    double elapsed = (double)(now_ms - baselines->now_ms);
    baselines->now_ms = now_ms;
    if (baselines->waiting && elapsed > 0) {
        double kept = exp2(-elapsed / half_life_ms);
        baselines->time_ms = baselines->time_ms * kept + (1 - kept) * half_life_ms / M_LN2;
        baselines->admitted *= kept;
    }
    baselines->waiting = waiting;
}

void baselines_admitted(struct baselines *baselines)
{
    if (baselines->waiting)
        baselines->admitted++;
}

void baselines_ended(struct baselines *baselines, int64_t session_ms)
{
    baselines->sessions++;
    baselines->sessions_ms += (double)session_ms;
}

/* Quantiles of a gamma distribution of this mean and of shape k (E. Wilson, M. Hilferty, "The
 * distribution of chi-square", 1931). */
static struct told range(double mean_s, double k)
{
    struct told told = {0};
    double *out[3] = {&told.low_s, &told.median_s, &told.high_s};
    for (int i = 0; i < 3; i++) {
        double x = 1 - 1 / (9 * k) + (i - 1) * 1.2815515655 / (3 * sqrt(k));
        *out[i] = x > 0 ? mean_s * x * x * x : 0;
    }
    return told;
}

bool baselines_tell(const struct baselines *baselines, uint64_t position, struct told told[WAYS])
{
    double k = (double)position, capacity = (double)baselines->capacity;
    if (baselines->admitted < 1 || baselines->time_ms <= 0 || baselines->sessions < 1 ||
        capacity < 1)
        return false;
    told[CONSTANT] = range(ceil(k / capacity) * baselines->constant_ms / 1000, k);
    told[WEIGHTED] = range(k * baselines->time_ms / baselines->admitted / 1000, k);
    told[LITTLE] = range(k * baselines->sessions_ms / baselines->sessions / capacity / 1000, k);
    return true;
}
