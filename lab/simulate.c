/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "common/config/queue_settings.h"
#include "common/line/budget.h"
#include "common/line/turns.h"

#include "lab/memory.h"
#include "lab/simulate.h"

#define NEVER      INT64_MAX
#define HORIZON_MS (INT64_C(10) * 366 * 86400000) /* ends a run; times admit it fits 63 bits */

enum { STARVED_FACTOR = 10, ALL = -1 };

enum place { PLACE_NONE, PLACE_WAITING, PLACE_GONE };

struct run {
    const struct tl_queue_settings *settings;
    const struct tl_simulation_visitors *visitors;
    const struct tl_arrivals *arrivals;
    struct tl_simulation *result;

    int64_t now_ms;
    size_t next_arrival, next_drop, n_drops;
    struct tl_turns turns;
    size_t first[TL_LANES_MAX];    /* no one of the lane before it waits */
    uint64_t sizes[TL_LANES_MAX];  /* how many wait in each lane; together `waiting` */
    uint64_t passed[TL_LANES_MAX]; /* admitted from other lanes since its last one */
    unsigned char *place;          /* enum place of each visitor */
    struct tl_due *drops;          /* when the absent lose their places, by time */
    struct tl_dues ends;           /* of sessions, and of waits for a claim */

    uint64_t waiting, active, present;
    struct tl_budget budget; /* of the rate */
    /* Slot time so far, in slots * ms, and what it was at the last admission. */
    double empty, empty_in_line, held, at_last[3];
    struct tl_series_point point; /* of this moment */
};

/* When the first of the line can be admitted, at the earliest now. */
static int64_t admission_due(struct run *run)
{
    const struct tl_queue_settings *settings = run->settings;
    if (run->waiting == 0 ||
        (settings->policy != TL_POLICY_RATE && run->active >= settings->capacity))
        return NEVER;
    int64_t due = run->now_ms > settings->opens_at_ms ? run->now_ms : settings->opens_at_ms;
    if (settings->policy == TL_POLICY_COUNTER || tl_budget_left(&run->budget, run->now_ms) > 0)
        return due;
    int64_t allowed = tl_budget_due_ms(&run->budget);
    return due > allowed ? due : allowed;
}

static void leave_line(struct run *run, size_t visitor)
{
    run->place[visitor] = PLACE_GONE;
    run->waiting--;
    run->sizes[run->result->visitors[visitor].lane]--;
}

/* Takes the first of the line out of it: that of the lane whose turn it is. */
static size_t take_first(struct run *run)
{
    unsigned lane = (unsigned)tl_turns_take(&run->turns, run->sizes);
    for (unsigned other = 0; other < run->settings->n_lanes; other++) {
        uint64_t *most = &run->result->lanes[other].passed_by;
        bool passed = other != lane && run->sizes[other] > 0;
        run->passed[other] = passed ? run->passed[other] + 1 : 0;
        *most = run->passed[other] > *most ? run->passed[other] : *most;
    }
    size_t *first = &run->first[lane];
    while (run->place[*first] != PLACE_WAITING || run->result->visitors[*first].lane != lane)
        (*first)++;
    leave_line(run, *first);
    return (*first)++;
}

/* Admits the first of the line, now. */
static void admit_first(struct run *run)
{
    size_t i = take_first(run);
    struct tl_simulation *result = run->result;
    struct tl_simulation_visitor *visitor = &result->visitors[i];
    int64_t waited = run->now_ms - run->arrivals->list[i].at_ms;
    bool gone = tl_visitor_patience_ms(run->visitors, i) < waited;
    int64_t limit = tl_queue_session_longest_ms(run->settings);
    int64_t stays = tl_visitor_session_ms(run->visitors, run->arrivals, i);
    visitor->gave_up = gone;
    visitor->came = !gone && tl_visitor_comes(run->visitors, i);
    if (!visitor->came)
        stays = run->settings->claim_ttl_ms;
    else if (stays > limit)
        result->cut_off++;
    stays = stays < limit ? stays : limit;
    visitor->admitted_ms = run->now_ms;
    visitor->freed_ms = run->now_ms + stays;
    tl_dues_push(&run->ends, (struct tl_due){.at_ms = visitor->freed_ms, .visitor = i});
    run->active++;
    run->present += visitor->came;
    *(visitor->came ? &result->served : &result->no_shows) += 1;
    run->point.admitted++;
}

/* Admits all that the store would, in one step for each budget that is left. */
static void admit_due(struct run *run)
{
    const bool rated = run->settings->policy != TL_POLICY_COUNTER;
    uint64_t before = run->point.admitted;
    while (admission_due(run) <= run->now_ms) {
        uint64_t left = rated ? tl_budget_left(&run->budget, run->now_ms) : UINT64_MAX, n = 0;
        for (; n < left && admission_due(run) <= run->now_ms; n++)
            admit_first(run);
        if (rated)
            tl_budget_spend(&run->budget, n, run->budget.rate.batches, run->now_ms);
    }
    if (run->point.admitted == before)
        return;
    run->at_last[0] = run->empty;
    run->at_last[1] = run->empty_in_line;
    run->at_last[2] = run->held;
}

static void arrive(struct run *run)
{
    const struct tl_arrivals *arrivals = run->arrivals;
    while (run->next_arrival < arrivals->n &&
           arrivals->list[run->next_arrival].at_ms == run->now_ms) {
        size_t i = run->next_arrival++;
        run->point.arrived++;
        run->result->arrived++;
        if (run->settings->max_waiting > 0 && run->waiting >= run->settings->max_waiting) {
            run->place[i] = PLACE_GONE;
            run->result->refused++;
            continue;
        }
        run->place[i] = PLACE_WAITING;
        run->waiting++;
        run->sizes[run->result->visitors[i].lane]++;
    }
}

static void drop_absent(struct run *run)
{
    for (; run->next_drop < run->n_drops && run->drops[run->next_drop].at_ms <= run->now_ms;
         run->next_drop++) {
        size_t visitor = run->drops[run->next_drop].visitor;
        if (run->place[visitor] != PLACE_WAITING)
            continue;
        leave_line(run, visitor);
        run->result->gave_up++;
    }
}

static void end_sessions(struct run *run)
{
    while (run->ends.n > 0 && run->ends.list[0].at_ms <= run->now_ms) {
        run->present -= run->result->visitors[tl_dues_pop(&run->ends).visitor].came;
        run->active--;
    }
}

/* Lets the time pass until then: nothing happens in between. */
static void pass(struct run *run, int64_t until_ms)
{
    int64_t from =
        run->now_ms > run->settings->opens_at_ms ? run->now_ms : run->settings->opens_at_ms;
    if (run->settings->policy != TL_POLICY_RATE && until_ms > from) {
        double slots = (double)(run->settings->capacity - run->active);
        double ms = (double)(until_ms - from);
        run->empty += slots * ms;
        run->empty_in_line += run->waiting > 0 ? slots * ms : 0;
        run->held += (double)(run->active - run->present) * ms;
    }
    if (run->waiting > 0)
        run->result->line_ms += until_ms - run->now_ms;
    run->now_ms = until_ms;
}

/* What is remembered of this moment, when all of it has happened. */
static void look(struct run *run)
{
    struct tl_simulation *result = run->result;
    run->point.waiting = run->waiting;
    run->point.active = run->active;
    tl_series_note(&result->series, run->now_ms, &run->point);
    run->point.arrived = run->point.admitted = 0;
    if (run->waiting > result->longest_line) {
        result->longest_line = run->waiting;
        result->longest_line_at_ms = run->now_ms;
    }
    if (run->active > result->most_active)
        result->most_active = run->active;
    if (run->present > result->most_on_the_site)
        result->most_on_the_site = run->present;
    if (run->waiting > 0)
        result->line_empty_from_ms = -1;
    else if (result->line_empty_from_ms < 0)
        result->line_empty_from_ms = run->now_ms;
}

static int64_t next_moment(struct run *run)
{
    int64_t next = admission_due(run);
    if (run->next_arrival < run->arrivals->n && run->arrivals->list[run->next_arrival].at_ms < next)
        next = run->arrivals->list[run->next_arrival].at_ms;
    if (run->ends.n > 0 && run->ends.list[0].at_ms < next)
        next = run->ends.list[0].at_ms;
    /* Drops of those who are gone already must not prolong the run. */
    if (run->waiting > 0 && run->next_drop < run->n_drops &&
        run->drops[run->next_drop].at_ms < next)
        next = run->drops[run->next_drop].at_ms;
    return next;
}

/* The queue has stood for long, so that any burst is there, and a period begins now. */
static void begin_budget(struct run *run)
{
    const struct tl_queue_settings *settings = run->settings;
    const struct tl_rate rate = {.admit = settings->rate.admit,
                                 .every_ms = settings->rate.every_ms,
                                 .burst = settings->rate.burst,
                                 .batches = settings->rate.shape == TL_RATE_BATCHES};
    if (settings->policy == TL_POLICY_COUNTER)
        return;
    tl_budget_begin(&run->budget, &rate, 0);
    run->budget.from_ms = -(int64_t)(rate.burst / rate.admit + 2) * rate.every_ms;
}

static void prepare(struct run *run)
{
    size_t n = run->arrivals->n;
    run->result = tl_xalloc(1, sizeof(*run->result));
    run->result->visitors = tl_xalloc(n, sizeof(*run->result->visitors));
    run->place = tl_xalloc(n, sizeof(*run->place));
    run->result->series.width_ms = 1;
    for (size_t i = 0; i < n; i++) {
        run->result->visitors[i].admitted_ms = -1;
        run->result->visitors[i].lane = tl_visitor_lane(run->visitors, i);
    }
    tl_turns_weigh(&run->turns, &run->settings->lane_weights);
    begin_budget(run);
    if (run->visitors->patience_ms == 0)
        return;
    /* When the absent are dropped does not depend on the line, so it is sorted once. */
    run->drops = tl_xalloc(n, sizeof(*run->drops));
    run->n_drops = n;
    for (size_t i = 0; i < n; i++)
        run->drops[i] = (struct tl_due){.at_ms = run->arrivals->list[i].at_ms +
                                                 tl_visitor_patience_ms(run->visitors, i) +
                                                 run->settings->waiting_ttl_ms,
                                        .visitor = i};
    tl_dues_sort(run->drops, n);
}

/* What the visitors of a lane met, or ALL; `passed_by` is counted already. waits has room for all.
 */
static void sum_met(const struct run *run, int lane, int64_t *waits, struct tl_met *met)
{
    size_t n = 0;
    met->arrived = 0;
    for (size_t i = 0; i < run->next_arrival; i++) {
        const struct tl_simulation_visitor *visitor = &run->result->visitors[i];
        if (lane != ALL && visitor->lane != (unsigned)lane)
            continue;
        met->arrived++;
        if (visitor->admitted_ms >= 0 && !visitor->gave_up)
            waits[n++] = visitor->admitted_ms - run->arrivals->list[i].at_ms;
    }
    met->admitted = n;
    met->waits = tl_times_of(waits, n);
    met->told_ms = met->true_ms = -1;
}

/* Waits and shares, when all has happened. */
static void sum_up(struct run *run)
{
    struct tl_simulation *result = run->result;
    int64_t *waits = tl_xalloc(run->arrivals->n, sizeof(*waits));
    int64_t last_ms = -1;
    for (size_t i = 0; i < run->arrivals->n; i++)
        if (result->visitors[i].admitted_ms > last_ms)
            last_ms = result->visitors[i].admitted_ms;
    sum_met(run, ALL, waits, &result->all);
    for (unsigned lane = 0; lane < run->settings->n_lanes; lane++)
        sum_met(run, (int)lane, waits, &result->lanes[lane]);
    free(waits);
    double slots =
        run->settings->policy == TL_POLICY_RATE
            ? 0
            : (double)run->settings->capacity * (double)(last_ms - run->settings->opens_at_ms);
    if (slots > 0) {
        result->slots_empty = run->at_last[0] / slots;
        result->slots_empty_in_line = run->at_last[1] / slots;
        result->slots_no_shows = run->at_last[2] / slots;
    }
    result->still_waiting = run->waiting;
    result->end_ms = run->now_ms;
}

struct tl_simulation *tl_simulation_run(const struct tl_queue_settings *settings,
                                        const struct tl_simulation_visitors *visitors,
                                        const struct tl_arrivals *arrivals)
{
    struct run run = {.settings = settings, .visitors = visitors, .arrivals = arrivals};
    prepare(&run);
    look(&run);
    for (int64_t next; (next = next_moment(&run)) <= HORIZON_MS;) {
        pass(&run, next);
        end_sessions(&run);
        arrive(&run);
        admit_due(&run);
        drop_absent(&run);
        look(&run);
    }
    sum_up(&run);
    free(run.place);
    free(run.ends.list);
    free(run.drops);
    return run.result;
}

void tl_simulation_free(struct tl_simulation **simulation)
{
    if (*simulation == NULL)
        return;
    free((*simulation)->visitors);
    free(*simulation);
    *simulation = NULL;
}

bool tl_lane_starved(const struct tl_queue_settings *queue, unsigned lane, const struct tl_met *met)
{
    const bool weighed = queue->lane_weights.n > 0;
    uint64_t sum = 0;
    for (size_t i = 0; i < queue->n_lanes; i++)
        sum += weighed ? queue->lane_weights.of[i] : 1;
    return met->passed_by * (weighed ? queue->lane_weights.of[lane] : 1) > STARVED_FACTOR * sum;
}

/* ---- a curve over time ---- */

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static void halve(struct tl_series *series)
{
    struct tl_series_point *points = series->points;
    for (size_t i = 0; i < TL_SERIES_MOST / 2; i++) {
        const struct tl_series_point *first = &points[2 * i];
        const struct tl_series_point *second = &points[2 * i + 1];
        points[i] = (struct tl_series_point){
            .arrived = first->arrived + second->arrived,
            .admitted = first->admitted + second->admitted,
            .waiting = larger(first->waiting, second->waiting),
            .active = larger(first->active, second->active),
        };
    }
    memset(points + TL_SERIES_MOST / 2, 0, TL_SERIES_MOST / 2 * sizeof(*points));
    series->width_ms *= 2;
    series->n = (series->n + 1) / 2;
}

void tl_series_note(struct tl_series *series, int64_t now_ms, const struct tl_series_point *point)
{
    while (now_ms / series->width_ms >= TL_SERIES_MOST)
        halve(series);
    size_t index = (size_t)(now_ms / series->width_ms);
    for (size_t i = series->n; i <= index; i++) {
        /* What was noted last holds until now, which may be the very beginning of a stretch. */
        bool before = (int64_t)i * series->width_ms < now_ms;
        series->points[i] = (struct tl_series_point){.waiting = before ? series->waiting : 0,
                                                     .active = before ? series->active : 0};
    }
    struct tl_series_point *at = &series->points[index];
    series->n = index + 1;
    at->arrived += point->arrived;
    at->admitted += point->admitted;
    at->waiting = larger(at->waiting, point->waiting);
    at->active = larger(at->active, point->active);
    series->waiting = point->waiting;
    series->active = point->active;
}
