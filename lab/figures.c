/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lab/figures.h"

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

static int compare_times(const void *a, const void *b)
{
    int64_t one = *(const int64_t *)a;
    int64_t other = *(const int64_t *)b;
    return (one > other) - (one < other);
}

static void sum_waits(const struct tl_rehearsal *rehearsal, int64_t *times,
                      struct tl_figures *figures)
{
    size_t n = 0;
    for (size_t i = 0; i < rehearsal->n; i++) {
        const struct tl_rehearsed *visitor = &rehearsal->visitors[i];
        if (visitor->called_ms >= 0)
            times[n++] = visitor->called_ms - visitor->joins_ms;
    }
    if (n == 0)
        return;
    qsort(times, n, sizeof(*times), compare_times);
    figures->wait_median_ms = times[(n - 1) / 2];
    figures->wait_most_ms = times[(n * 9 + 9) / 10 - 1];
    figures->wait_longest_ms = times[n - 1];
}

/* Admissions that visitors were told of, in windows of one period. Who gave up and was called
 * nevertheless is not known here, so there may have been more. */
static void sum_periods(const struct tl_rehearsal *rehearsal, int64_t every_ms, int64_t *times,
                        struct tl_figures *figures)
{
    size_t n = 0;
    for (size_t i = 0; i < rehearsal->n; i++) {
        if (rehearsal->visitors[i].admitted_ms >= 0)
            times[n++] = rehearsal->visitors[i].admitted_ms;
    }
    if (n == 0)
        return;
    qsort(times, n, sizeof(*times), compare_times);
    for (size_t from = 0, to = 0; to < n; to++) {
        while (times[to] - times[from] >= every_ms)
            from++;
        if (to - from + 1 > figures->per_period)
            figures->per_period = to - from + 1;
    }
    int64_t span_ms = times[n - 1] - times[0];
    if (span_ms >= every_ms)
        figures->per_period_average = (double)(n - 1) * (double)every_ms / (double)span_ms;
}

static int compare_joined(const void *a, const void *b)
{
    const struct tl_rehearsed *one = *(const struct tl_rehearsed *const *)a;
    const struct tl_rehearsed *other = *(const struct tl_rehearsed *const *)b;
    return (one->joined_ms > other->joined_ms) - (one->joined_ms < other->joined_ms);
}

static int compare_joins(const void *a, const void *b)
{
    const struct tl_rehearsed *one = *(const struct tl_rehearsed *const *)a;
    const struct tl_rehearsed *other = *(const struct tl_rehearsed *const *)b;
    return (one->joins_ms > other->joins_ms) - (one->joins_ms < other->joins_ms);
}

/* Who sent the join after another had been told a place stands behind that one. So for each visitor
 * the latest admission among those of its lane is looked up. Who came before the opening is left
 * out: a draw may order these. */
static bool count_overtaken(const struct tl_rehearsal *rehearsal, struct tl_figures *figures)
{
    const struct tl_rehearsed **list = calloc(2 * rehearsal->n + 1, sizeof(*list));
    if (list == NULL)
        return false;
    const struct tl_rehearsed **by_joins = list;
    const struct tl_rehearsed **by_joined = list + rehearsal->n;
    size_t n = 0;
    for (size_t i = 0; i < rehearsal->n; i++) {
        const struct tl_rehearsed *visitor = &rehearsal->visitors[i];
        if (visitor->admitted_ms < 0 || visitor->joined_ms < 0 ||
            visitor->joins_ms < rehearsal->opened_ms)
            continue;
        by_joins[n] = by_joined[n] = visitor;
        n++;
    }
    qsort(by_joins, n, sizeof(*by_joins), compare_joins);
    qsort(by_joined, n, sizeof(*by_joined), compare_joined);
    int64_t latest_ms[TL_LANES_MAX] = {0};
    for (size_t i = 0, before = 0; i < n; i++) {
        for (; before < n && by_joined[before]->joined_ms < by_joins[i]->joins_ms; before++) {
            int64_t *latest = &latest_ms[by_joined[before]->lane];
            if (by_joined[before]->admitted_ms > *latest)
                *latest = by_joined[before]->admitted_ms;
        }
        figures->overtaken += by_joins[i]->admitted_ms < latest_ms[by_joins[i]->lane] ? 1 : 0;
    }
    free(list);
    return true;
}

static void count_each(const struct tl_rehearsal *rehearsal, struct tl_figures *figures)
{
    for (size_t i = 0; i < rehearsal->n; i++) {
        const struct tl_rehearsed *visitor = &rehearsal->visitors[i];
        figures->fates[visitor->fate]++;
        figures->arrived += visitor->joins_ms >= 0;
        figures->joined += visitor->joined_ms >= 0;
        figures->admitted += visitor->called_ms >= 0;
        if (visitor->promised_ms < 0 || visitor->called_ms < 0)
            continue;
        int64_t waited_ms = visitor->called_ms - visitor->promised_ms;
        figures->promises++;
        figures->kept += waited_ms >= visitor->low_ms && waited_ms <= visitor->high_ms;
    }
}

bool tl_figures_compute(const struct tl_rehearsal *rehearsal,
                        const struct tl_queue_settings *settings, struct tl_figures *figures)
{
    int64_t *times = calloc(rehearsal->n + 1, sizeof(*times));
    *figures = (struct tl_figures){0};
    if (times == NULL)
        return false;
    count_each(rehearsal, figures);
    sum_waits(rehearsal, times, figures);
    sum_periods(rehearsal, settings->rate.every_ms, times, figures);
    free(times);
    return count_overtaken(rehearsal, figures);
}

/* ---- the verdict ---- */

static void say(struct tl_broken *broken, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void say(struct tl_broken *broken, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (broken->n < sizeof(broken->texts) / sizeof(broken->texts[0])) {
        char *text = broken->texts[broken->n++];
        vsnprintf(text, sizeof(broken->texts[0]), format, args);
    }
    va_end(args);
}

static void judge_limits(const struct tl_rehearsal *rehearsal,
                         const struct tl_queue_settings *settings, const struct tl_figures *figures,
                         struct tl_broken *broken)
{
    uint64_t burst = settings->rate.shape == TL_RATE_SMOOTH ? settings->rate.burst : 0;
    uint64_t called = settings->capacity + settings->overbook;
    if (settings->policy != TL_POLICY_RATE && rehearsal->most_active > called)
        say(broken, "visitors were told that %" PRIu64 " are active; the settings allow %" PRIu64,
            rehearsal->most_active, called);
    if (settings->policy != TL_POLICY_RATE && rehearsal->most_present > settings->capacity)
        say(broken,
            "%" PRIu64 " visitors were on the site at once; the capacity of the settings is "
            "%" PRIu64,
            rehearsal->most_present, settings->capacity);
    if (settings->policy != TL_POLICY_COUNTER && figures->per_period > settings->rate.admit + burst)
        say(broken,
            "%" PRIu64 " were admitted within one rate.every; the rate of the settings allows "
            "%" PRIu64,
            figures->per_period, settings->rate.admit + burst);
}

void tl_figures_judge(const struct tl_rehearsal *rehearsal,
                      const struct tl_queue_settings *settings, const struct tl_figures *figures,
                      struct tl_broken *broken)
{
    *broken = (struct tl_broken){0};
    judge_limits(rehearsal, settings, figures, broken);
    if (figures->overtaken > 0)
        say(broken, "%" PRIu64 " visitors were admitted before somebody who had joined earlier",
            figures->overtaken);
    /* With several lanes, who joins a better one is rightly put before others. */
    if (rehearsal->set_back > 0 && settings->n_lanes <= 1)
        say(broken, "a visitor was told a higher position than before, %" PRIu64 " times",
            rehearsal->set_back);
    if (figures->fates[TL_FATE_DROPPED] > 0)
        say(broken, "%" PRIu64 " visitors who listened lost their places",
            figures->fates[TL_FATE_DROPPED]);
    if (figures->joined == 0 && !rehearsal->stopped)
        say(broken, "nobody could join");
    if (figures->fates[TL_FATE_FAILED] > 0)
        say(broken, "%" PRIu64 " visitors failed: errors, again and again",
            figures->fates[TL_FATE_FAILED]);
    if (rehearsal->overtime)
        say(broken, "%" PRIu64 " visitors were not done long after the simulation says",
            figures->fates[TL_FATE_OPEN]);
}
