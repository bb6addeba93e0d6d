/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "expirer/visits.h"

enum { SECOND = 1000, MINUTE = 60 * SECOND };

struct world {
    struct tl_queue_metrics *metrics;
    struct tl_queue_series *series;
    struct tl_visits *visits;
    struct tl_line *line;
    uint64_t event, waiting, active;
};

/* A line that has one visitor in lane 1, of seq 5, from before. */
static void begin(struct world *world, int64_t now_ms)
{
    *world = (struct world){
        .metrics = tl_queue_metrics_new(&tl_visits_tables, 1), .line = tl_line_new(), .waiting = 1};
    world->series = tl_queue_metrics_add(world->metrics, "bank");
    world->visits = tl_visits_new(world->series);
    assert_non_null(world->visits);
    tl_line_start(world->line, 1, 0);
    world->line->last_seq = 5;
    assert_true(tl_line_add_waiting(world->line, tl_place_make(1, 5), 1));
    tl_visits_start(world->visits, world->line, now_ms);
}

static void end(struct world *world)
{
    tl_visits_free(&world->visits);
    tl_line_free(&world->line);
    tl_queue_metrics_remove(world->metrics, &world->series);
    tl_queue_metrics_free(&world->metrics);
}

/* One entry with one event about a run of places, and, if first2 is not 0, a JOINED after it. */
static void happen(struct world *world, enum tl_event_kind kind, tl_place first, uint64_t count,
                   enum tl_reason reason, tl_place first2, int64_t now_ms)
{
    struct tl_run run = {first, count}, run2 = {first2, count};
    struct tl_event events[2] = {{.kind = kind, .places = {.n = 1, .runs = &run}, .reason = reason},
                                 {.kind = TL_EVENT_JOINED, .places = {.n = 1, .runs = &run2}}};
    if (kind == TL_EVENT_JOINED)
        world->waiting += count;
    else if (kind == TL_EVENT_FREED)
        world->active -= count;
    else if (first2 == 0)
        world->waiting -= count;
    if (kind == TL_EVENT_ADMITTED)
        world->active += count;
    const struct tl_event_entry entry = {.number = ++world->event,
                                         .generation = 1,
                                         .waiting = world->waiting,
                                         .active = world->active,
                                         .n_events = first2 != 0 ? 2 : 1,
                                         .events = events};
    assert_int_equal(tl_line_apply(world->line, &entry, now_ms), TL_LINE_APPLIED);
    tl_visits_apply(world->visits, &entry, now_ms);
}

static int64_t of_queue(struct world *world, enum tl_visits_metric metric)
{
    return tl_metrics_get(world->series->values, metric);
}

static int64_t of_lane(struct world *world, unsigned lane, enum tl_visits_lane_metric metric)
{
    return tl_metrics_get(tl_queue_series_lane(world->series, lane), metric);
}

static void assert_text(struct world *world, const char *line)
{
    struct tl_text text = {0};
    tl_queue_metrics_write(world->metrics, "r=\"e\"", &text);
    if (strstr(text.data, line) == NULL)
        fail_msg("no %s in\n%s", line, text.data);
    tl_text_free(&text);
}

/* Three join after a minute; the first two, and the one from before, are admitted. */
static void test_waits_and_sessions(void **state)
{
    struct world world;
    (void)state;
    begin(&world, 0);
    happen(&world, TL_EVENT_JOINED, tl_place_make(0, 6), 3, 0, 0, MINUTE);
    assert_int_equal(of_queue(&world, TL_VISITS_JOINED), 3);
    assert_int_equal(of_lane(&world, 0, TL_VISITS_LANE_JOINED), 3);
    tl_visits_look(world.visits, world.line, 2 * MINUTE);
    assert_int_equal(of_queue(&world, TL_VISITS_OLDEST_WAIT), 120); /* at least */
    assert_int_equal(of_lane(&world, 0, TL_VISITS_LANE_OLDEST_WAIT), 60);
    assert_int_equal(of_lane(&world, 0, TL_VISITS_LANE_WAITING), 3);
    assert_int_equal(of_lane(&world, 1, TL_VISITS_LANE_WAITING), 1);
    assert_int_equal(of_queue(&world, TL_VISITS_OVER_1M), 4);
    assert_int_equal(of_queue(&world, TL_VISITS_OVER_5M), 0);
    tl_visits_look(world.visits, world.line, 5 * MINUTE);
    assert_int_equal(of_queue(&world, TL_VISITS_OVER_5M), 1); /* the one from before */
    tl_visits_look(world.visits, world.line, 6 * MINUTE - 1);
    assert_int_equal(of_queue(&world, TL_VISITS_OVER_5M), 1);
    tl_visits_look(world.visits, world.line, 6 * MINUTE);
    assert_int_equal(of_queue(&world, TL_VISITS_OVER_5M), 4);
    assert_int_equal(of_queue(&world, TL_VISITS_OVER_10M), 0);
    tl_visits_look(world.visits, world.line, 61 * MINUTE);
    assert_int_equal(of_queue(&world, TL_VISITS_OVER_1H), 4);
    assert_int_equal(of_queue(&world, TL_VISITS_OVER_30M), 4);
    happen(&world, TL_EVENT_ADMITTED, tl_place_make(0, 6), 2, 0, 0, 3 * MINUTE);
    happen(&world, TL_EVENT_ADMITTED, tl_place_make(1, 5), 1, 0, 0, 3 * MINUTE);
    assert_int_equal(of_queue(&world, TL_VISITS_WAIT_TIME), 2); /* the third wait is not known */
    assert_text(&world, "tellerline_queue_wait_seconds_sum{r=\"e\",queue=\"bank\"} 240.000000\n");
    assert_int_equal(of_lane(&world, 0, TL_VISITS_LANE_ADMITTED), 2);
    assert_int_equal(of_lane(&world, 1, TL_VISITS_LANE_ADMITTED), 1);
    tl_visits_look(world.visits, world.line, 4 * MINUTE);
    assert_int_equal(of_queue(&world, TL_VISITS_OLDEST_WAIT), 180);
    happen(&world, TL_EVENT_FREED, tl_place_make(0, 6), 1, TL_REASON_COMPLETED, 0, 5 * MINUTE);
    happen(&world, TL_EVENT_FREED, tl_place_make(0, 7), 1, TL_REASON_UNCLAIMED, 0, 5 * MINUTE);
    happen(&world, TL_EVENT_FREED, tl_place_make(1, 5), 1, TL_REASON_EXPIRED, 0, 6 * MINUTE);
    assert_int_equal(of_queue(&world, TL_VISITS_COMPLETED), 1);
    assert_int_equal(of_queue(&world, TL_VISITS_NO_SHOWS), 1);
    assert_int_equal(of_queue(&world, TL_VISITS_EXPIRED), 1);
    assert_int_equal(of_queue(&world, TL_VISITS_SESSION_TIME), 2);
    assert_text(&world,
                "tellerline_queue_session_seconds_sum{r=\"e\",queue=\"bank\"} 300.000000\n");
    end(&world);
}

/* Who leaves the line gave up; who is moved did not, and does not join again. */
static void test_the_line(void **state)
{
    struct world world;
    (void)state;
    begin(&world, 0);
    happen(&world, TL_EVENT_JOINED, tl_place_make(0, 6), 5, 0, 0, MINUTE);
    happen(&world, TL_EVENT_REMOVED, tl_place_make(0, 6), 1, TL_REASON_LEFT, 0, 2 * MINUTE);
    happen(&world, TL_EVENT_REMOVED, tl_place_make(0, 7), 1, TL_REASON_ABSENT, 0, 2 * MINUTE);
    happen(&world, TL_EVENT_REMOVED, tl_place_make(0, 8), 1, TL_REASON_REMOVED, 0, 2 * MINUTE);
    happen(&world, TL_EVENT_REMOVED, tl_place_make(0, 9), 1, TL_REASON_MOVED, tl_place_make(2, 9),
           2 * MINUTE);
    assert_int_equal(of_queue(&world, TL_VISITS_JOINED), 5);
    assert_int_equal(of_queue(&world, TL_VISITS_GAVE_UP), 2);
    assert_int_equal(of_queue(&world, TL_VISITS_REMOVED), 1);
    tl_visits_look(world.visits, world.line, 3 * MINUTE);
    assert_int_equal(of_lane(&world, 0, TL_VISITS_LANE_WAITING), 1);
    assert_int_equal(of_lane(&world, 2, TL_VISITS_LANE_WAITING), 1);
    assert_int_equal(of_lane(&world, 2, TL_VISITS_LANE_OLDEST_WAIT), 120);
    happen(&world, TL_EVENT_ADMITTED, tl_place_make(0, 10), 1, 0, 0, 4 * MINUTE);
    happen(&world, TL_EVENT_ADMITTED, tl_place_make(1, 5), 1, 0, 0, 4 * MINUTE);
    happen(&world, TL_EVENT_ADMITTED, tl_place_make(2, 9), 1, 0, 0, 4 * MINUTE);
    tl_visits_look(world.visits, world.line, 9 * MINUTE);
    assert_int_equal(of_queue(&world, TL_VISITS_OLDEST_WAIT), 0);
    end(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_waits_and_sessions),
                                       cmocka_unit_test(test_the_line)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
