/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "worker/queue/eta.h"

enum {
    CLASSES = TL_PROMISES_CLASSES,
    PER_CLASS = TL_PROMISES_PER_CLASS,
    GREW_S = 2,
    TICK_MS = 1000,
    ERROR_MAX = 10,
};

static const uint64_t class_from[CLASSES + 1] = {1, 5, 20, 50, UINT64_MAX};
static const double forget = 0.01; /* of the score with each new result */
static const double grew = 0.1;    /* by this share, and by GREW_S, an estimate counts as grown */

void tl_promises_drop(struct tl_promises *promises)
{
    memset(promises->list, 0, sizeof(promises->list));
    promises->waiting = 0;
}

/* ---- what came true ---- */

static void drop(struct tl_promises *promises, struct tl_promise *promise)
{
    promise->place = 0;
    promises->waiting--;
}

/* Compared as told, in whole seconds. */
static void judge(struct tl_promises *promises, const struct tl_promise *promise, int64_t now_ms)
{
    struct tl_promises_score *score = &promises->score;
    struct tl_promises_news *news = &promises->news;
    double waited_s = (double)(now_ms - promise->told_ms) / 1000;
    bool early = waited_s < floor(promise->range.low_s);
    bool late = waited_s > ceil(promise->range.high_s);
    double error = fabs(promise->range.median_s - waited_s) / fmax(1, waited_s);
    double weight = fmax(forget, 1.0 / (double)(score->judged + 1));
    score->judged++;
    if (news->counts[TL_PROMISED_ETA_JUDGED]++ == 0)
        news->since_ms = now_ms;
    news->counts[TL_PROMISED_ETA_EARLY] += early;
    news->counts[TL_PROMISED_ETA_LATE] += late;
    news->counts[TL_PROMISED_ETA_ERROR] += (uint64_t)llround(100 * fmin(error, ERROR_MAX));
    score->inside += weight * ((early || late ? 0 : 1) - score->inside);
    score->error += weight * (fmin(error, ERROR_MAX) - score->error);
}

static bool has_admissions(const struct tl_event_entry *entry)
{
    for (size_t i = 0; i < entry->n_events; i++)
        if (entry->events[i].kind == TL_EVENT_ADMITTED)
            return true;
    return false;
}

void tl_promises_apply(struct tl_promises *promises, const struct tl_line *line,
                       const struct tl_event_entry *entry, int64_t now_ms)
{
    if (promises->waiting == 0 || !has_admissions(entry))
        return;
    for (size_t i = 0; i < CLASSES * (size_t)PER_CLASS; i++) {
        struct tl_promise *promise = &promises->list[i / PER_CLASS][i % PER_CLASS];
        if (promise->place == 0)
            continue;
        enum tl_line_status status = tl_line_look(line, promise->place).status;
        if (status == TL_LINE_WAITING)
            continue;
        if (status == TL_LINE_ACTIVE) /* the others left, which says nothing */
            judge(promises, promise, now_ms);
        drop(promises, promise);
    }
}

/* ---- who is told ---- */

static uint64_t next_random(struct tl_promises *promises)
{
    /* splitmix64 (G. Steele, D. Lea, C. Flood, 2014) */
    uint64_t z = (promises->random += UINT64_C(0x9E3779B97F4A7C15));
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

static bool is_told(const struct tl_promises *promises, tl_place place)
{
    for (size_t i = 0; i < CLASSES * (size_t)PER_CLASS; i++)
        if (promises->list[i / PER_CLASS][i % PER_CLASS].place == place)
            return true;
    return false;
}

/* A place that waits in some lane, whose rank there is one of this band; 0: none. */
static tl_place choose(struct tl_promises *promises, const struct tl_line *line, unsigned band)
{
    unsigned lane = (unsigned)(next_random(promises) % TL_LANES_MAX);
    for (unsigned i = 0; i < TL_LANES_MAX; i++, lane = (lane + 1) % TL_LANES_MAX) {
        const struct tl_order *order = tl_line_order(line, lane);
        uint64_t count = order != NULL ? order->count : 0;
        uint64_t seq;
        if (count < class_from[band])
            continue;
        uint64_t last = count < class_from[band + 1] ? count : class_from[band + 1] - 1;
        uint64_t range = last - class_from[band] + 1;
        if (tl_order_select(order, class_from[band] - 1 + next_random(promises) % range, &seq))
            return tl_place_make(lane, seq);
    }
    return 0;
}

static void tell(struct tl_promises *promises, unsigned band, struct tl_eta *eta,
                 const struct tl_line *line, int64_t now_ms)
{
    struct tl_promise *slot = NULL;
    struct tl_eta_range range;
    enum tl_eta_reason reason;
    for (unsigned i = 0; i < PER_CLASS && slot == NULL; i++)
        if (promises->list[band][i].place == 0)
            slot = &promises->list[band][i];
    tl_place place = slot != NULL ? choose(promises, line, band) : 0;
    if (place == 0 || is_told(promises, place))
        return;
    uint64_t ahead = tl_line_look(line, place).ahead;
    if (!tl_eta_estimate(eta, ahead + 1, now_ms, &range, &reason))
        return;
    *slot = (struct tl_promise){.place = place,
                                .told_ms = now_ms,
                                .range = range,
                                .ahead = ahead,
                                .least_s = range.median_s};
    promises->waiting++;
}

/* Has the estimate of this visitor grown? */
static void compare(struct tl_promise *promise, struct tl_eta *eta, const struct tl_line *line,
                    int64_t now_ms)
{
    struct tl_eta_range range;
    enum tl_eta_reason reason;
    struct tl_line_view view = tl_line_look(line, promise->place);
    if (view.status != TL_LINE_WAITING ||
        !tl_eta_estimate(eta, view.ahead + 1, now_ms, &range, &reason))
        return;
    if (range.median_s > promise->least_s * (1 + grew) + GREW_S) {
        tl_eta_grew(eta, view.ahead > promise->ahead ? TL_ETA_MORE_AHEAD : TL_ETA_SLOWER, now_ms);
        promise->least_s = range.median_s;
    }
    promise->least_s = fmin(promise->least_s, range.median_s);
    promise->ahead = view.ahead;
}

void tl_promises_tick(struct tl_promises *promises, struct tl_eta *eta, const struct tl_line *line,
                      int64_t now_ms)
{
    if (promises->ticked_ms != 0 && now_ms < promises->ticked_ms + TICK_MS)
        return;
    promises->ticked_ms = now_ms;
    for (unsigned band = 0; band < CLASSES; band++) {
        for (unsigned i = 0; i < PER_CLASS; i++)
            if (promises->list[band][i].place != 0)
                compare(&promises->list[band][i], eta, line, now_ms);
        tell(promises, band, eta, line, now_ms);
    }
}
