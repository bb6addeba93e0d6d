/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "common/line/placemap.h"
#include "expirer/arrivals.h"
#include "expirer/visits.h"

/* Sessions whose beginning is remembered; of more, the lengths of some are not counted. */
enum { SESSIONS_MAX = 200000 };

#define WAITING_OVER(name, time)                                                                   \
    {                                                                                              \
        "tellerline_queue_waiting_over_" name,                                                     \
            "Visitors who have waited for " time " or longer, at least.", TL_GAUGE                 \
    }

static const struct tl_metric_desc queue_rows[TL_VISITS_METRICS] = {
    [TL_VISITS_JOINED] = {"tellerline_queue_joined_total", "Visitors who got a place.", TL_COUNTER},
    [TL_VISITS_COMPLETED] = {"tellerline_queue_completed_total", "Sessions completed.", TL_COUNTER},
    [TL_VISITS_LEFT] = {"tellerline_queue_left_total", "Sessions that visitors left.", TL_COUNTER},
    [TL_VISITS_EXPIRED] = {"tellerline_queue_expired_total", "Sessions that ran out.", TL_COUNTER},
    [TL_VISITS_NO_SHOWS] = {"tellerline_queue_no_shows_total", "Sessions of no-shows.", TL_COUNTER},
    [TL_VISITS_REMOVED] = {"tellerline_queue_removed_total",
                           "Visitors removed by an operator, waiting or active.", TL_COUNTER},
    [TL_VISITS_GAVE_UP] = {"tellerline_queue_gave_up_total",
                           "Visitors who left the line, or went away, before admission.",
                           TL_COUNTER},
    [TL_VISITS_OLDEST_WAIT] = {"tellerline_queue_oldest_wait_seconds",
                               "Longest wait in the line, at least.", TL_GAUGE_MAX},
    [TL_VISITS_OVER_1M] = WAITING_OVER("1m", "1 minute"),
    [TL_VISITS_OVER_5M] = WAITING_OVER("5m", "5 minutes"),
    [TL_VISITS_OVER_10M] = WAITING_OVER("10m", "10 minutes"),
    [TL_VISITS_OVER_30M] = WAITING_OVER("30m", "30 minutes"),
    [TL_VISITS_OVER_1H] = WAITING_OVER("1h", "1 hour"),
    [TL_VISITS_WAIT_TIME] = {"tellerline_queue_wait_seconds", "From joining to admission.",
                             TL_HISTOGRAM_LONG},
    [TL_VISITS_SESSION_TIME] = {"tellerline_queue_session_seconds",
                                "From admission to the end of the session, without no-shows.",
                                TL_HISTOGRAM_LONG},
};

static const struct tl_metric_desc lane_rows[TL_VISITS_LANE_METRICS] = {
    [TL_VISITS_LANE_WAITING] = {"tellerline_lane_waiting", "Visitors in the lane.", TL_GAUGE},
    [TL_VISITS_LANE_JOINED] = {"tellerline_lane_joined_total",
                               "Visitors who got a place in the lane.", TL_COUNTER},
    [TL_VISITS_LANE_ADMITTED] = {"tellerline_lane_admitted_total",
                                 "Visitors admitted from the lane.", TL_COUNTER},
    [TL_VISITS_LANE_OLDEST_WAIT] = {"tellerline_lane_oldest_wait_seconds",
                                    "Longest wait in the lane, at least.", TL_GAUGE_MAX},
};

const struct tl_queue_metrics_tables tl_visits_tables = {.queue = queue_rows,
                                                         .n_queue = TL_VISITS_METRICS,
                                                         .lane = lane_rows,
                                                         .n_lane = TL_VISITS_LANE_METRICS};

struct tl_visits {
    struct tl_queue_series *series;
    struct tl_arrivals arrivals;
    struct tl_placemap admitted; /* active place -> when it was admitted */
};

struct tl_visits *tl_visits_new(struct tl_queue_series *series)
{
    struct tl_visits *visits = calloc(1, sizeof(*visits));
    if (visits != NULL)
        visits->series = series;
    return visits;
}

void tl_visits_free(struct tl_visits **visits)
{
    if (*visits == NULL)
        return;
    tl_placemap_clear(&(*visits)->admitted);
    free(*visits);
    *visits = NULL;
}

static bool is_active(void *context, tl_place place)
{
    return tl_line_look(context, place).status == TL_LINE_ACTIVE;
}

void tl_visits_start(struct tl_visits *visits, const struct tl_line *line, int64_t now_ms)
{
    tl_placemap_keep(&visits->admitted, is_active, (void *)(uintptr_t)line);
    /* Visitors who join from now on have a later seq. */
    tl_arrivals_note(&visits->arrivals, line->last_seq + 1, now_ms);
}

/* ---- events ---- */

static void count_lane(struct tl_visits *visits, tl_place place, enum tl_visits_lane_metric metric,
                       uint64_t n)
{
    struct tl_metrics *lane = tl_queue_series_lane(visits->series, tl_place_lane(place));
    if (lane != NULL) /* else there is no memory for its metrics */
        tl_metrics_add(lane, metric, (int64_t)n);
}

static void join(struct tl_visits *visits, const struct tl_run *run, int64_t now_ms)
{
    tl_metrics_add(visits->series->values, TL_VISITS_JOINED, (int64_t)run->count);
    count_lane(visits, run->first, TL_VISITS_LANE_JOINED, run->count);
    tl_arrivals_note(&visits->arrivals, tl_place_seq(run->first), now_ms);
}

static void admit(struct tl_visits *visits, const struct tl_run *run, int64_t now_ms)
{
    count_lane(visits, run->first, TL_VISITS_LANE_ADMITTED, run->count);
    for (uint64_t k = 0; k < run->count; k++) {
        tl_place place = run->first + k;
        int64_t joined_ms;
        if (tl_arrivals_find(&visits->arrivals, tl_place_seq(place), now_ms, &joined_ms))
            tl_metrics_observe(visits->series->values, TL_VISITS_WAIT_TIME,
                               (now_ms - joined_ms) * 1000);
        if (visits->admitted.count < SESSIONS_MAX)
            (void)tl_placemap_put(&visits->admitted, place, (uint64_t)now_ms);
    }
}

static void end_sessions(struct tl_visits *visits, const struct tl_run *run, enum tl_reason reason,
                         int64_t now_ms)
{
    static const enum tl_visits_metric counters[] = {
        [TL_REASON_COMPLETED] = TL_VISITS_COMPLETED, [TL_REASON_LEFT] = TL_VISITS_LEFT,
        [TL_REASON_EXPIRED] = TL_VISITS_EXPIRED,     [TL_REASON_UNCLAIMED] = TL_VISITS_NO_SHOWS,
        [TL_REASON_ABSENT] = TL_VISITS_EXPIRED,      [TL_REASON_REMOVED] = TL_VISITS_REMOVED};
    struct tl_metrics *values = visits->series->values;
    if (reason < TL_REASON_COMPLETED || reason > TL_REASON_REMOVED)
        return;
    tl_metrics_add(values, counters[reason], (int64_t)run->count);
    for (uint64_t k = 0; k < run->count; k++) {
        uint64_t admitted_ms;
        if (tl_placemap_remove(&visits->admitted, run->first + k, &admitted_ms) &&
            reason != TL_REASON_UNCLAIMED)
            tl_metrics_observe(values, TL_VISITS_SESSION_TIME,
                               (now_ms - (int64_t)admitted_ms) * 1000);
    }
}

static void leave_line(struct tl_visits *visits, const struct tl_run *run, enum tl_reason reason)
{
    if (reason == TL_REASON_LEFT || reason == TL_REASON_ABSENT)
        tl_metrics_add(visits->series->values, TL_VISITS_GAVE_UP, (int64_t)run->count);
    else if (reason == TL_REASON_REMOVED)
        tl_metrics_add(visits->series->values, TL_VISITS_REMOVED, (int64_t)run->count);
}

/* Do the places that joined in this entry belong to visitors who waited before it: a move to
 * another lane, or a draw? */
static bool is_move(const struct tl_event_entry *entry)
{
    for (size_t i = 0; i < entry->n_events; i++)
        if (entry->events[i].kind == TL_EVENT_REMOVED && entry->events[i].reason == TL_REASON_MOVED)
            return true;
    return false;
}

void tl_visits_apply(struct tl_visits *visits, const struct tl_event_entry *entry, int64_t now_ms)
{
    bool moves = is_move(entry);
    for (size_t i = 0; i < entry->n_events; i++) {
        const struct tl_event *event = &entry->events[i];
        for (size_t r = 0; r < event->places.n; r++) {
            const struct tl_run *run = &event->places.runs[r];
            if (event->kind == TL_EVENT_JOINED && !moves)
                join(visits, run, now_ms);
            else if (event->kind == TL_EVENT_ADMITTED)
                admit(visits, run, now_ms);
            else if (event->kind == TL_EVENT_FREED)
                end_sessions(visits, run, event->reason, now_ms);
            else if (event->kind == TL_EVENT_REMOVED)
                leave_line(visits, run, event->reason);
        }
    }
}

/* ---- the line ---- */

/* Counts who has waited for how long. */
static void look_at_waits(struct tl_visits *visits, const struct tl_line *line, int64_t now_ms)
{
    static const int64_t minutes[] = {1, 5, 10, 30, 60};
    for (size_t i = 0; i < sizeof(minutes) / sizeof(minutes[0]); i++) {
        uint64_t after = tl_arrivals_after(&visits->arrivals, now_ms - minutes[i] * 60000);
        uint64_t n = 0;
        for (unsigned lane = 0; after > 0 && lane < TL_LANES_MAX; lane++) {
            const struct tl_order *order = tl_line_order(line, lane);
            n += order != NULL ? tl_order_rank(order, after) : 0;
        }
        tl_metrics_set(visits->series->values, TL_VISITS_OVER_1M + i, (int64_t)n);
    }
}

void tl_visits_look(struct tl_visits *visits, const struct tl_line *line, int64_t now_ms)
{
    int64_t longest_s = 0;
    uint64_t first_seq = line->last_seq + 1;
    for (unsigned lane = 0; lane < TL_LANES_MAX; lane++) {
        const struct tl_order *order = tl_line_order(line, lane);
        struct tl_metrics *values =
            order != NULL ? tl_queue_series_lane(visits->series, lane) : NULL;
        int64_t joined_ms = now_ms;
        uint64_t seq;
        if (values == NULL)
            continue;
        if (tl_order_next(order, 1, &seq)) {
            (void)tl_arrivals_find(&visits->arrivals, seq, now_ms, &joined_ms);
            first_seq = seq < first_seq ? seq : first_seq;
        }
        int64_t wait_s = (now_ms - joined_ms) / 1000;
        longest_s = wait_s > longest_s ? wait_s : longest_s;
        tl_metrics_set(values, TL_VISITS_LANE_WAITING, (int64_t)order->count);
        tl_metrics_set(values, TL_VISITS_LANE_OLDEST_WAIT, wait_s);
    }
    tl_metrics_set(visits->series->values, TL_VISITS_OLDEST_WAIT, longest_s);
    look_at_waits(visits, line, now_ms);
    tl_arrivals_forget(&visits->arrivals, first_seq);
}
