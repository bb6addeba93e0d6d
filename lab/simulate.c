/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/line/turns.h"

#include "lab/simulate.h"

#define NEVER      INT64_MAX
#define HORIZON_MS (INT64_C(10) * 366 * 86400000) /* ends a run; times admit it fits 63 bits */

/* Purposes of tl_plan_random; 0 is the arrival. */
enum { DRAWN_PATIENCE = 1, DRAWN_NO_SHOW, DRAWN_SESSION, DRAWN_SESSION_ANGLE, DRAWN_LANE };

/* The end of a session or of the wait for a claim. */
struct end {
    int64_t at_ms;
    bool came;
};

/* The moment at which an absent visitor loses the place. */
struct drop {
    int64_t at_ms;
    size_t visitor;
};

enum place { PLACE_NONE, PLACE_WAITING, PLACE_GONE };

struct run {
    const struct tl_simulation_settings *settings;
    const struct tl_simulation_visitors *visitors;
    const struct tl_arrivals *arrivals;
    struct tl_simulation *result;

    int64_t now_ms;
    size_t next_arrival, next_drop, n_drops, n_ends;
    struct tl_turns turns;
    size_t first[TL_LANES_MAX];    /* no one of the lane before it waits */
    uint64_t sizes[TL_LANES_MAX];  /* how many wait in each lane; together `waiting` */
    uint64_t passed[TL_LANES_MAX]; /* admitted from other lanes since its last one */
    unsigned char *place, *lane;   /* enum place and lane of each visitor */
    struct drop *drops;            /* by time */
    struct end *ends;              /* a heap, the earliest on top */

    uint64_t waiting, active, present;
    int64_t paced;     /* smooth: when the rate has made up for all admissions, in ms * admit */
    int64_t next_lump; /* lumps: not before */
    int64_t line_since_ms;
    /* Slot time so far, in slots * ms, and what it was at the last admission. */
    double empty, empty_in_line, held, at_last[3];
    struct tl_series_point point; /* of this moment */
};

void tl_simulation_settings_planned(const struct tl_plan_input *input, const struct tl_plan *plan,
                                    struct tl_simulation_settings *settings)
{
    *settings = (struct tl_simulation_settings){
        .policy = input->policy,
        .capacity = plan->capacity,
        .admit = plan->admit,
        .every_ms = input->period_ms,
        .lumps = input->lumps,
        .burst = input->burst,
        .session_limit_ms = plan->session_ttl_ms,
        .claim_ttl_ms = plan->claim_ttl_ms,
        .waiting_ttl_ms = plan->waiting_ttl_ms,
        .lanes = {.n = 1},
    };
}

static void push_end(struct run *run, struct end end)
{
    size_t at = run->n_ends++;
    for (; at > 0 && run->ends[(at - 1) / 2].at_ms > end.at_ms; at = (at - 1) / 2)
        run->ends[at] = run->ends[(at - 1) / 2];
    run->ends[at] = end;
}

static struct end pop_end(struct run *run)
{
    struct end top = run->ends[0];
    struct end moved = run->ends[--run->n_ends];
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < run->n_ends; at = child) {
        if (child + 1 < run->n_ends && run->ends[child + 1].at_ms < run->ends[child].at_ms)
            child++;
        if (run->ends[child].at_ms >= moved.at_ms)
            break;
        run->ends[at] = run->ends[child];
    }
    if (run->n_ends > 0)
        run->ends[at] = moved;
    return top;
}

int64_t tl_visitor_patience_ms(const struct tl_simulation_visitors *visitors, size_t visitor)
{
    if (visitors->patience_ms == 0)
        return NEVER;
    double u = tl_plan_random(visitors->seed, visitor, DRAWN_PATIENCE);
    return (int64_t)ceil(-log(u) * (double)visitors->patience_ms);
}

bool tl_visitor_comes(const struct tl_simulation_visitors *visitors, size_t visitor)
{
    return tl_plan_random(visitors->seed, visitor, DRAWN_NO_SHOW) >= visitors->no_shows;
}

/* Log-normal with the given mean and spread (Box and Muller, 1958). */
int64_t tl_visitor_session_ms(const struct tl_simulation_visitors *visitors,
                              const struct tl_arrivals *arrivals, size_t visitor)
{
    if (arrivals->list[visitor].session_ms >= 0)
        return arrivals->list[visitor].session_ms;
    if (visitors->spread <= 0)
        return visitors->session_ms;
    double radius = sqrt(-2 * log(tl_plan_random(visitors->seed, visitor, DRAWN_SESSION)));
    double angle = 2 * M_PI * tl_plan_random(visitors->seed, visitor, DRAWN_SESSION_ANGLE);
    double variance = log(1 + visitors->spread * visitors->spread);
    double factor = exp(sqrt(variance) * radius * cos(angle) - variance / 2);
    return (int64_t)fmin(factor * (double)visitors->session_ms, 1e15);
}

unsigned tl_visitor_lane(const struct tl_simulation_visitors *visitors, size_t visitor)
{
    double drawn = tl_plan_random(visitors->seed, visitor, DRAWN_LANE);
    unsigned lane = 0; /* the last one that has a share, when the sum is not quite 1 */
    for (unsigned i = 0; i < TL_LANES_MAX && drawn >= 0; i++) {
        if (visitors->lanes[i] > 0)
            lane = i;
        drawn -= visitors->lanes[i];
    }
    return lane;
}

/* When the first of the line can be admitted, at the earliest now. */
static int64_t admission_due(const struct run *run)
{
    const struct tl_simulation_settings *settings = run->settings;
    if (run->waiting == 0 ||
        (settings->policy != TL_POLICY_RATE && run->active >= settings->capacity))
        return NEVER;
    int64_t due = run->now_ms > settings->opens_ms ? run->now_ms : settings->opens_ms;
    if (settings->policy == TL_POLICY_COUNTER)
        return due;
    /* Smooth is a token bucket, written as the moment at which it is full again (the "generic
     * cell rate algorithm" of ITU-T I.371). In units of ms * admit all of it is whole numbers. */
    int64_t admit = (int64_t)settings->admit;
    int64_t paced = run->paced - (int64_t)settings->burst * settings->every_ms;
    int64_t allowed = settings->lumps ? run->next_lump
                      : paced > 0     ? (paced + admit - 1) / admit
                                      : 0;
    return due > allowed ? due : allowed;
}

static void leave_line(struct run *run, size_t visitor)
{
    run->place[visitor] = PLACE_GONE;
    run->waiting--;
    run->sizes[run->lane[visitor]]--;
}

/* Takes the first of the line out of it: that of the lane whose turn it is. */
static size_t take_first(struct run *run)
{
    uint64_t admitted[TL_LANES_MAX] = {0};
    unsigned lane = (unsigned)tl_turns_next(&run->turns, run->sizes);
    for (unsigned other = 0; other < run->settings->lanes.n; other++) {
        uint64_t *most = &run->result->lanes[other].passed;
        bool passed = other != lane && run->sizes[other] > 0;
        run->passed[other] = passed ? run->passed[other] + 1 : 0;
        *most = run->passed[other] > *most ? run->passed[other] : *most;
    }
    admitted[lane] = 1;
    tl_turns_admitted(&run->turns, admitted);
    size_t *first = &run->first[lane];
    while (run->place[*first] != PLACE_WAITING || run->lane[*first] != lane)
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
    int64_t limit = run->settings->session_limit_ms;
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
    push_end(run, (struct end){.at_ms = visitor->freed_ms, .came = visitor->came});
    run->active++;
    run->present += visitor->came;
    *(visitor->came ? &result->served : &result->no_shows) += 1;
    run->point.admitted++;
}

static void admit_due(struct run *run)
{
    const struct tl_simulation_settings *settings = run->settings;
    uint64_t left = settings->lumps ? settings->admit : UINT64_MAX;
    uint64_t before = run->point.admitted;
    for (; left > 0 && admission_due(run) <= run->now_ms; left--) {
        /* A due admission waits for the next whole ms. That is not a pause. */
        int64_t now = run->now_ms * (int64_t)settings->admit;
        run->paced =
            (run->paced > now - (int64_t)settings->admit ? run->paced : now) + settings->every_ms;
        admit_first(run);
    }
    if (run->point.admitted == before)
        return;
    run->next_lump = run->now_ms + settings->every_ms;
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
        run->result->lanes[run->lane[i]].arrived++;
        if (run->settings->max_waiting > 0 && run->waiting >= run->settings->max_waiting) {
            run->place[i] = PLACE_GONE;
            run->result->refused++;
            continue;
        }
        run->place[i] = PLACE_WAITING;
        run->waiting++;
        run->sizes[run->lane[i]]++;
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
    while (run->n_ends > 0 && run->ends[0].at_ms <= run->now_ms) {
        run->present -= pop_end(run).came;
        run->active--;
    }
}

/* Lets the time pass until then: nothing happens in between. */
static void pass(struct run *run, int64_t until_ms)
{
    int64_t from = run->now_ms > run->settings->opens_ms ? run->now_ms : run->settings->opens_ms;
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
        result->longest_line_ms = run->now_ms;
    }
    if (run->active > result->most_active)
        result->most_active = run->active;
    if (run->present > result->most_present)
        result->most_present = run->present;
    if (run->waiting > 0)
        result->last_empty_ms = -1;
    else if (result->last_empty_ms < 0)
        result->last_empty_ms = run->now_ms;
}

static int64_t next_moment(const struct run *run)
{
    int64_t next = admission_due(run);
    if (run->next_arrival < run->arrivals->n && run->arrivals->list[run->next_arrival].at_ms < next)
        next = run->arrivals->list[run->next_arrival].at_ms;
    if (run->n_ends > 0 && run->ends[0].at_ms < next)
        next = run->ends[0].at_ms;
    /* Drops of those who are gone already must not prolong the run. */
    if (run->waiting > 0 && run->next_drop < run->n_drops &&
        run->drops[run->next_drop].at_ms < next)
        next = run->drops[run->next_drop].at_ms;
    return next;
}

static int compare_drops(const void *a, const void *b)
{
    const struct drop *one = a;
    const struct drop *other = b;
    if (one->at_ms != other->at_ms)
        return one->at_ms < other->at_ms ? -1 : 1;
    return one->visitor < other->visitor ? -1 : one->visitor > other->visitor;
}

static int compare_times(const void *a, const void *b)
{
    int64_t one = *(const int64_t *)a;
    int64_t other = *(const int64_t *)b;
    return one < other ? -1 : one > other;
}

static bool prepare(struct run *run)
{
    size_t n = run->arrivals->n;
    run->result = calloc(1, sizeof(*run->result));
    if (run->result == NULL)
        return false;
    run->result->visitors = calloc(n, sizeof(*run->result->visitors));
    run->place = calloc(n, sizeof(*run->place));
    run->lane = calloc(n, sizeof(*run->lane));
    run->ends = calloc(n, sizeof(*run->ends));
    run->drops = run->visitors->patience_ms > 0 ? calloc(n, sizeof(*run->drops)) : NULL;
    if (run->result->visitors == NULL || run->place == NULL || run->lane == NULL ||
        run->ends == NULL || (run->drops == NULL && run->visitors->patience_ms > 0))
        return false;
    for (size_t i = 0; i < n; i++) {
        run->result->visitors[i].admitted_ms = -1;
        run->lane[i] = (unsigned char)tl_visitor_lane(run->visitors, i);
    }
    tl_turns_weigh(&run->turns, &run->settings->lanes.weights);
    /* When the absent are dropped does not depend on the line, so it is sorted once. */
    for (size_t i = 0; run->drops != NULL && i < n; i++)
        run->drops[i] = (struct drop){.at_ms = run->arrivals->list[i].at_ms +
                                               tl_visitor_patience_ms(run->visitors, i) +
                                               run->settings->waiting_ttl_ms,
                                      .visitor = i};
    if (run->drops != NULL) {
        run->n_drops = n;
        qsort(run->drops, n, sizeof(*run->drops), compare_drops);
    }
    tl_series_init(&run->result->series);
    return true;
}

/* waits has room for all visitors. */
static void sum_lane(struct run *run, unsigned lane, int64_t *waits)
{
    size_t n = 0;
    for (size_t i = 0; i < run->arrivals->n; i++) {
        const struct tl_simulation_visitor *visitor = &run->result->visitors[i];
        if (run->lane[i] == lane && visitor->admitted_ms >= 0 && !visitor->gave_up)
            waits[n++] = visitor->admitted_ms - run->arrivals->list[i].at_ms;
    }
    tl_lane_waits_sum(&run->result->lanes[lane], waits, n);
}

/* Waits and shares, when all has happened. False when out of memory. */
static bool sum_up(struct run *run)
{
    struct tl_simulation *result = run->result;
    int64_t *waits = calloc(run->arrivals->n, sizeof(*waits));
    if (waits == NULL)
        return false;
    size_t n = 0;
    int64_t last_ms = -1;
    for (size_t i = 0; i < run->arrivals->n; i++) {
        const struct tl_simulation_visitor *visitor = &result->visitors[i];
        if (visitor->admitted_ms > last_ms)
            last_ms = visitor->admitted_ms;
        if (visitor->admitted_ms >= 0 && visitor->came)
            waits[n++] = visitor->admitted_ms - run->arrivals->list[i].at_ms;
    }
    qsort(waits, n, sizeof(*waits), compare_times);
    if (n > 0) {
        result->wait_median_ms = waits[(n - 1) / 2];
        result->wait_most_ms = waits[(n * 19 + 19) / 20 - 1];
        result->wait_longest_ms = waits[n - 1];
    }
    for (unsigned lane = 0; lane < run->settings->lanes.n; lane++)
        sum_lane(run, lane, waits);
    free(waits);
    double slots =
        run->settings->policy == TL_POLICY_RATE
            ? 0
            : (double)run->settings->capacity * (double)(last_ms - run->settings->opens_ms);
    if (slots > 0) {
        result->slots_empty = run->at_last[0] / slots;
        result->slots_empty_in_line = run->at_last[1] / slots;
        result->slots_no_shows = run->at_last[2] / slots;
    }
    result->waiting = run->waiting;
    result->end_ms = run->now_ms;
    return true;
}

struct tl_simulation *tl_simulation_run(const struct tl_simulation_settings *settings,
                                        const struct tl_simulation_visitors *visitors,
                                        const struct tl_arrivals *arrivals, struct tl_error *err)
{
    struct run run = {.settings = settings, .visitors = visitors, .arrivals = arrivals};
    bool ok = prepare(&run);
    if (ok)
        look(&run);
    for (int64_t next; ok && (next = next_moment(&run)) <= HORIZON_MS;) {
        pass(&run, next);
        end_sessions(&run);
        arrive(&run);
        admit_due(&run);
        drop_absent(&run);
        look(&run);
    }
    ok = ok && sum_up(&run);
    free(run.place);
    free(run.lane);
    free(run.ends);
    free(run.drops);
    if (!ok) {
        tl_simulation_free(&run.result);
        tl_error_set(err, TL_ERR_NOMEM, "no memory to simulate %zu visitors", arrivals->n);
    }
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
