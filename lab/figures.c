/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lab/figures.h"
#include "lab/memory.h"

enum { ALL = -1 };

void tl_reasons_count(struct tl_reasons *reasons, const char *name)
{
    size_t i = 0;
    while (i < reasons->n && strcmp(reasons->list[i].name, name) != 0)
        i++;
    if (i >= TL_REASONS_MOST - 1) {
        i = TL_REASONS_MOST - 1;
        name = "others";
    }
    if (i >= reasons->n) {
        reasons->n = i + 1;
        snprintf(reasons->list[i].name, TL_REASON_MAX, "%s", name);
    }
    reasons->list[i].count++;
}

/* ---- waits and promises ---- */

/* Of a lane, or ALL. times has room for all visitors twice. */
static void sum_met(const struct tl_rehearsal *rehearsal, int lane, int64_t *times,
                    struct tl_met *met)
{
    int64_t *truth = times + rehearsal->n;
    size_t n = 0;
    for (size_t i = 0; i < rehearsal->n; i++) {
        const struct tl_rehearsed *visitor = &rehearsal->visitors[i];
        if (lane != ALL && visitor->lane != (unsigned)lane)
            continue;
        met->arrived += visitor->joins_ms >= 0;
        if (visitor->called_ms >= 0)
            times[n++] = visitor->called_ms - visitor->joins_ms;
    }
    met->admitted = n;
    met->waits = tl_times_of(times, n);
    n = 0;
    for (size_t i = 0; i < rehearsal->n; i++) {
        const struct tl_rehearsed *visitor = &rehearsal->visitors[i];
        if ((lane != ALL && visitor->lane != (unsigned)lane) || visitor->promised_ms < 0 ||
            visitor->called_ms < 0)
            continue;
        int64_t waited_ms = visitor->called_ms - visitor->promised_ms;
        met->promises_kept += waited_ms >= visitor->low_ms && waited_ms <= visitor->high_ms;
        times[n] = (visitor->low_ms + visitor->high_ms) / 2;
        truth[n++] = waited_ms;
    }
    met->promises = n;
    met->told_ms = tl_times_of(times, n).median_ms;
    met->true_ms = tl_times_of(truth, n).median_ms;
}

/* ---- the order of admissions ---- */

/* Sorts the visitors by a moment (an offset into struct tl_rehearsed) that is known of them.
 * Returns how many; the list is the caller's to free. */
static size_t sort_by(const struct tl_rehearsal *rehearsal, size_t moment, struct tl_due **list)
{
    size_t n = 0;
    *list = tl_xalloc(rehearsal->n, sizeof(**list));
    for (size_t i = 0; i < rehearsal->n; i++) {
        int64_t at_ms;
        memcpy(&at_ms, (const char *)&rehearsal->visitors[i] + moment, sizeof(at_ms));
        if (at_ms >= 0)
            (*list)[n++] = (struct tl_due){.at_ms = at_ms, .visitor = i};
    }
    tl_dues_sort(*list, n);
    return n;
}
#define MOMENT(field) offsetof(struct tl_rehearsed, field)

/* Admissions that visitors were told of, in windows of one period. Those who gave up and were
 * called nevertheless are not known here, so there may have been more. */
static void sum_periods(const struct tl_due *admitted, size_t n, int64_t every_ms,
                        struct tl_figures *figures)
{
    for (size_t from = 0, to = 0; to < n; to++) {
        while (admitted[to].at_ms - admitted[from].at_ms >= every_ms)
            from++;
        if (to - from + 1 > figures->per_period)
            figures->per_period = to - from + 1;
    }
    int64_t span_ms = n > 0 ? admitted[n - 1].at_ms - admitted[0].at_ms : 0;
    if (n > 0 && span_ms >= every_ms)
        figures->per_period_average = (double)(n - 1) * (double)every_ms / (double)span_ms;
}

/* A visitor whose join was sent after another had been told a place is behind that one. So for each
 * the latest admission among those of its lane is looked up. Those who came before the opening are
 * left out: a draw may order them. */
static void count_overtaken(const struct tl_rehearsal *rehearsal, struct tl_figures *figures)
{
    struct tl_due *joins, *joined;
    size_t n = sort_by(rehearsal, MOMENT(joins_ms), &joins), before = 0;
    size_t n_joined = sort_by(rehearsal, MOMENT(joined_ms), &joined);
    int64_t latest_ms[TL_LANES_MAX] = {0};
    for (size_t i = 0; i < n; i++) {
        const struct tl_rehearsed *visitor = &rehearsal->visitors[joins[i].visitor];
        for (; before < n_joined && joined[before].at_ms < visitor->joins_ms; before++) {
            const struct tl_rehearsed *other = &rehearsal->visitors[joined[before].visitor];
            if (other->joins_ms >= rehearsal->opened_ms &&
                other->admitted_ms > latest_ms[other->lane])
                latest_ms[other->lane] = other->admitted_ms;
        }
        figures->overtaken += visitor->joins_ms >= rehearsal->opened_ms &&
                              visitor->joined_ms >= 0 && visitor->admitted_ms >= 0 &&
                              visitor->admitted_ms < latest_ms[visitor->lane];
    }
    free(joins);
    free(joined);
}

/* ---- lanes ---- */

/* Visitors admitted in one step of the admitter, in which no order can be seen. */
struct step {
    int64_t admitted_ms;
    int64_t told_ms; /* when the first of them was told; never falls from step to step */
    uint64_t admitted[TL_LANES_MAX];
    int64_t waiting[TL_LANES_MAX]; /* change of those who wait before the step, by visitors who are
                                      known to wait */
};

/* Fills the steps, in their order; returns how many. */
static size_t find_steps(const struct tl_rehearsal *rehearsal, const struct tl_due *admitted,
                         size_t n, struct step *steps)
{
    size_t found = 0;
    for (size_t i = 0; i < n; i++) {
        const struct tl_rehearsed *visitor = &rehearsal->visitors[admitted[i].visitor];
        if (found == 0 || steps[found - 1].admitted_ms != visitor->admitted_ms)
            steps[found++] =
                (struct step){.admitted_ms = visitor->admitted_ms, .told_ms = visitor->called_ms};
        struct step *step = &steps[found - 1];
        if (visitor->called_ms < step->told_ms)
            step->told_ms = visitor->called_ms;
        step->admitted[visitor->lane]++;
    }
    for (size_t i = 1; i < found; i++) {
        if (steps[i].told_ms < steps[i - 1].told_ms)
            steps[i].told_ms = steps[i - 1].told_ms;
    }
    return found;
}

/* The first step that was told (else: admitted) then or later; n when there is none. */
static size_t find_step(const struct step *steps, size_t n, bool told, int64_t from_ms)
{
    size_t low = 0;
    for (size_t high = n; low < high;) {
        size_t middle = low + (high - low) / 2;
        if ((told ? steps[middle].told_ms : steps[middle].admitted_ms) >= from_ms)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* The most admissions from other lanes in a row while visitors of the lane waited. */
static void count_passed(const struct tl_rehearsal *rehearsal, struct step *steps, size_t n,
                         struct tl_met lanes[TL_LANES_MAX])
{
    for (size_t i = 0; i < rehearsal->n; i++) {
        const struct tl_rehearsed *visitor = &rehearsal->visitors[i];
        if (visitor->joined_ms < 0)
            continue;
        size_t from = find_step(steps, n, true, visitor->joined_ms + 1);
        size_t to = n;
        if (visitor->admitted_ms >= 0)
            to = find_step(steps, n, false, visitor->admitted_ms);
        else if (visitor->gone_ms >= 0)
            to = find_step(steps, n, true, visitor->gone_ms + 1);
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
            if (passed > lanes[lane].passed_by)
                lanes[lane].passed_by = passed;
        }
    }
}

void tl_figures_compute(const struct tl_rehearsal *rehearsal,
                        const struct tl_queue_settings *settings, struct tl_figures *figures)
{
    int64_t *times = tl_xalloc(2 * rehearsal->n, sizeof(*times));
    struct step *steps = tl_xalloc(rehearsal->n, sizeof(*steps));
    struct tl_due *admitted;
    size_t n = sort_by(rehearsal, MOMENT(admitted_ms), &admitted);
    *figures = (struct tl_figures){0};
    for (size_t i = 0; i < rehearsal->n; i++) {
        figures->fates[rehearsal->visitors[i].fate]++;
        figures->joined += rehearsal->visitors[i].joined_ms >= 0;
    }
    sum_met(rehearsal, ALL, times, &figures->all);
    for (unsigned lane = 0; lane < TL_LANES_MAX; lane++)
        sum_met(rehearsal, (int)lane, times, &figures->lanes[lane]);
    sum_periods(admitted, n, settings->rate.every_ms, figures);
    count_overtaken(rehearsal, figures);
    count_passed(rehearsal, steps, find_steps(rehearsal, admitted, n, steps), figures->lanes);
    free(times);
    free(steps);
    free(admitted);
}

/* ---- the verdict ---- */

static void judge_limits(const struct tl_rehearsal *rehearsal,
                         const struct tl_queue_settings *settings, const struct tl_figures *figures,
                         struct tl_sentences *broken)
{
    uint64_t burst = settings->rate.shape == TL_RATE_SMOOTH ? settings->rate.burst : 0;
    uint64_t called = settings->capacity + settings->overbook;
    if (settings->policy != TL_POLICY_RATE && rehearsal->most_active > called)
        tl_say(broken,
               "visitors were told that %" PRIu64 " are active; the settings allow %" PRIu64,
               rehearsal->most_active, called);
    if (settings->policy != TL_POLICY_RATE && rehearsal->most_on_the_site > settings->capacity)
        tl_say(broken,
               "%" PRIu64 " visitors were on the site at once; the capacity of the settings is "
               "%" PRIu64,
               rehearsal->most_on_the_site, settings->capacity);
    if (settings->policy != TL_POLICY_COUNTER && figures->per_period > settings->rate.admit + burst)
        tl_say(broken,
               "%" PRIu64 " were admitted within one rate.every; the rate of the settings allows "
               "%" PRIu64,
               figures->per_period, settings->rate.admit + burst);
}

void tl_figures_judge(const struct tl_rehearsal *rehearsal,
                      const struct tl_queue_settings *settings, const struct tl_figures *figures,
                      struct tl_sentences *broken)
{
    *broken = (struct tl_sentences){0};
    judge_limits(rehearsal, settings, figures, broken);
    if (figures->overtaken > 0)
        tl_say(broken, "%" PRIu64 " visitors were admitted before someone who had joined earlier",
               figures->overtaken);
    /* With several lanes, who joins a better one is rightly put before others. */
    if (rehearsal->set_back > 0 && settings->n_lanes <= 1)
        tl_say(broken, "a visitor was told a higher position than before, %" PRIu64 " times",
               rehearsal->set_back);
    if (figures->fates[TL_FATE_DROPPED] > 0)
        tl_say(broken, "%" PRIu64 " visitors who listened lost their places",
               figures->fates[TL_FATE_DROPPED]);
    if (figures->joined == 0 && !rehearsal->stopped)
        tl_say(broken, "nobody could join");
    if (figures->fates[TL_FATE_FAILED] > 0)
        tl_say(broken, "%" PRIu64 " visitors failed: errors, again and again",
               figures->fates[TL_FATE_FAILED]);
    if (rehearsal->overtime)
        tl_say(broken, "%" PRIu64 " visitors were not done long after the simulation says",
               figures->fates[TL_FATE_OPEN]);
}
