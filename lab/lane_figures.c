/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "lab/lane_figures.h"

/* Visitors admitted in one step of the admitter, in which no order can be seen. */
struct step {
    int64_t admitted_ms;
    int64_t told_ms; /* when the first of them was told; never falls from step to step */
    uint64_t admitted[TL_LANES_MAX];
    int64_t waiting[TL_LANES_MAX]; /* change of those who wait before the step, by visitors who are
                                      known to wait */
};

static int compare_admitted(const void *a, const void *b)
{
    const struct tl_rehearsed *one = *(const struct tl_rehearsed *const *)a;
    const struct tl_rehearsed *other = *(const struct tl_rehearsed *const *)b;
    return (one->admitted_ms > other->admitted_ms) - (one->admitted_ms < other->admitted_ms);
}

/* Fills the steps, in their order; returns how many. list has room for all visitors. */
static size_t find_steps(const struct tl_rehearsal *rehearsal, const struct tl_rehearsed **list,
                         struct step *steps)
{
    size_t n = 0;
    size_t found = 0;
    for (size_t i = 0; i < rehearsal->n; i++) {
        if (rehearsal->visitors[i].admitted_ms >= 0)
            list[n++] = &rehearsal->visitors[i];
    }
    qsort(list, n, sizeof(*list), compare_admitted);
    for (size_t i = 0; i < n; i++) {
        if (found == 0 || steps[found - 1].admitted_ms != list[i]->admitted_ms)
            steps[found++] =
                (struct step){.admitted_ms = list[i]->admitted_ms, .told_ms = list[i]->called_ms};
        struct step *step = &steps[found - 1];
        if (list[i]->called_ms < step->told_ms)
            step->told_ms = list[i]->called_ms;
        step->admitted[list[i]->lane]++;
    }
    for (size_t i = 1; i < found; i++) {
        if (steps[i].told_ms < steps[i - 1].told_ms)
            steps[i].told_ms = steps[i - 1].told_ms;
    }
    return found;
}

/* The first step that was told after that time; n when there is none. */
static size_t step_after(const struct step *steps, size_t n, int64_t time_ms)
{
    size_t low = 0;
    for (size_t high = n; low < high;) {
        size_t middle = low + (high - low) / 2;
        if (steps[middle].told_ms > time_ms)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static size_t step_of(const struct step *steps, size_t n, int64_t admitted_ms)
{
    size_t low = 0;
    for (size_t high = n; low < high;) {
        size_t middle = low + (high - low) / 2;
        if (steps[middle].admitted_ms >= admitted_ms)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* The most admissions from other lanes in a row while visitors of the lane waited. */
static void count_passed(const struct tl_rehearsal *rehearsal, struct step *steps, size_t n,
                         struct tl_lane_figures lanes[TL_LANES_MAX])
{
    for (size_t i = 0; i < rehearsal->n; i++) {
        const struct tl_rehearsed *visitor = &rehearsal->visitors[i];
        if (visitor->joined_ms < 0)
            continue;
        size_t from = step_after(steps, n, visitor->joined_ms);
        size_t to = n;
        if (visitor->admitted_ms >= 0)
            to = step_of(steps, n, visitor->admitted_ms);
        else if (visitor->gone_ms >= 0)
            to = step_after(steps, n, visitor->gone_ms);
        if (from >= to)
            continue;
        steps[from].waiting[visitor->lane]++;
        if (to < n)
            steps[to].waiting[visitor->lane]--;
    }
    for (unsigned lane = 0; lane < TL_LANES_MAX; lane++) {
        int64_t waiting = 0;
        uint64_t passed = 0;
        for (size_t i = 0; i < n; i++) {
            waiting += steps[i].waiting[lane];
            if (steps[i].admitted[lane] > 0 || waiting == 0)
                passed = 0;
            for (unsigned other = 0; other < TL_LANES_MAX && waiting > 0; other++)
                passed += steps[i].admitted[lane] == 0 ? steps[i].admitted[other] : 0;
            if (passed > lanes[lane].waits.passed)
                lanes[lane].waits.passed = passed;
        }
    }
}

static void sum_waits(const struct tl_rehearsal *rehearsal, unsigned lane, int64_t *times,
                      struct tl_lane_figures *figures)
{
    struct tl_lane_waits told = {0};
    size_t n = 0;
    for (size_t i = 0; i < rehearsal->n; i++) {
        const struct tl_rehearsed *visitor = &rehearsal->visitors[i];
        figures->waits.arrived += visitor->lane == lane && visitor->joins_ms >= 0 ? 1 : 0;
        if (visitor->lane == lane && visitor->called_ms >= 0)
            times[n++] = visitor->called_ms - visitor->joins_ms;
    }
    tl_lane_waits_sum(&figures->waits, times, n);
    n = 0;
    for (size_t i = 0; i < rehearsal->n; i++) {
        const struct tl_rehearsed *visitor = &rehearsal->visitors[i];
        if (visitor->lane != lane || visitor->promised_ms < 0 || visitor->called_ms < 0)
            continue;
        int64_t waited_ms = visitor->called_ms - visitor->promised_ms;
        figures->kept += waited_ms >= visitor->low_ms && waited_ms <= visitor->high_ms ? 1 : 0;
        times[n] = (visitor->low_ms + visitor->high_ms) / 2;
        times[rehearsal->n + n++] = waited_ms;
    }
    figures->promises = n;
    tl_lane_waits_sum(&told, times, n);
    figures->told_ms = told.median_ms;
    tl_lane_waits_sum(&told, times + rehearsal->n, n);
    figures->true_ms = told.median_ms;
}

bool tl_lane_figures_compute(const struct tl_rehearsal *rehearsal,
                             struct tl_lane_figures lanes[TL_LANES_MAX])
{
    size_t n = rehearsal->n + 1;
    int64_t *times = calloc(2 * n, sizeof(*times));
    const struct tl_rehearsed **list = calloc(n, sizeof(*list));
    struct step *steps = calloc(n, sizeof(*steps));
    bool ok = times != NULL && list != NULL && steps != NULL;
    for (unsigned lane = 0; lane < TL_LANES_MAX; lane++)
        lanes[lane] = (struct tl_lane_figures){0};
    if (ok) {
        for (unsigned lane = 0; lane < TL_LANES_MAX; lane++)
            sum_waits(rehearsal, lane, times, &lanes[lane]);
        count_passed(rehearsal, steps, find_steps(rehearsal, list, steps), lanes);
    }
    free(times);
    free(list);
    free(steps);
    return ok;
}
