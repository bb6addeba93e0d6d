/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "worker/queue/eta.h"

/* A line whose sessions last exactly as long as the test says. */
struct world {
    struct tl_eta eta;
    uint64_t joined, admitted, ended; /* seqs up to these have done so, in order */
};

static void start(struct world *world, const struct tl_eta_rule *rule)
{
    *world = (struct world){0};
    tl_eta_set_rule(&world->eta, rule, 0);
    tl_eta_set_open(&world->eta, true, 0);
}

static void step(struct world *world, enum tl_event_kind kind, uint64_t *last, uint64_t count,
                 int64_t now_ms)
{
    struct tl_run run = {.first = tl_place_make(0, *last + 1), .count = count};
    struct tl_event event = {.kind = kind, .places = {.n = 1, .runs = &run}};
    struct tl_event_entry entry = {.n_events = 1, .events = &event};
    *last += count;
    entry.waiting = world->joined - world->admitted;
    entry.active = world->admitted - world->ended;
    tl_eta_apply(&world->eta, &entry, now_ms);
}

/* `capacity` sessions of a minute each that ended and were replaced one by one for five minutes,
 * with many waiting. Returns the time. */
static int64_t run_steadily(struct world *world, uint64_t capacity)
{
    int64_t now_ms = 0, interval_ms = 60000 / (int64_t)capacity;
    step(world, TL_EVENT_JOINED, &world->joined, 5000, now_ms);
    for (uint64_t i = 0; i < capacity; i++, now_ms += interval_ms)
        step(world, TL_EVENT_ADMITTED, &world->admitted, 1, now_ms);
    for (uint64_t i = 0; i < 5 * capacity; i++, now_ms += interval_ms) {
        step(world, TL_EVENT_FREED, &world->ended, 1, now_ms);
        step(world, TL_EVENT_ADMITTED, &world->admitted, 1, now_ms);
    }
    return now_ms - interval_ms;
}

static void near(double value, double expected, double tolerance)
{
    if (fabs(value - expected) > tolerance * fabs(expected))
        fail_msg("%g is not within %g of %g", value, tolerance, expected);
}

static struct tl_eta_range ask(struct world *world, uint64_t position, int64_t now_ms,
                               enum tl_eta_reason expected)
{
    struct tl_eta_range range = {0};
    enum tl_eta_reason reason;
    assert_true(tl_eta_estimate(&world->eta, position, now_ms, &range, &reason));
    assert_int_equal(reason, expected);
    assert_true(range.low_s <= range.median_s && range.median_s <= range.high_s);
    return range;
}

static void expect_none(struct world *world, int64_t now_ms, enum tl_eta_reason expected)
{
    struct tl_eta_range range;
    enum tl_eta_reason reason;
    assert_false(tl_eta_estimate(&world->eta, 10, now_ms, &range, &reason));
    assert_int_equal(reason, expected);
}

static void test_sessions_say_the_wait(void **state)
{
    (void)state;
    struct world world;
    start(&world, &(struct tl_eta_rule){.counted = true, .capacity = 20});
    expect_none(&world, 0, TL_ETA_NOT_KNOWN);
    int64_t now_ms = run_steadily(&world, 20);
    near(ask(&world, 10, now_ms, TL_ETA_PLAIN).median_s, 30, 0.15);
    near(ask(&world, 100, now_ms, TL_ETA_PLAIN).median_s, 300, 0.1);
    near(ask(&world, 4000, now_ms, TL_ETA_PLAIN).median_s, 12000, 0.1); /* far beyond the steps */
    tl_placemap_clear(&world.eta.sessions.running);
}

/* A lowered capacity counts at once: those beyond it end first, then it is so much slower. */
static void test_a_lowered_capacity_counts_at_once(void **state)
{
    (void)state;
    struct world world;
    start(&world, &(struct tl_eta_rule){.counted = true, .capacity = 20});
    int64_t now_ms = run_steadily(&world, 20);
    tl_eta_set_rule(&world.eta, &(struct tl_eta_rule){.counted = true, .capacity = 5}, now_ms);
    /* 15 of 20 have to end first, which takes 45 s of a minute. */
    struct tl_eta_range first = ask(&world, 1, now_ms, TL_ETA_CAPACITY_LOWERED);
    near(first.median_s, 48, 0.15);
    assert_true(first.low_s > 30);
    near(ask(&world, 105, now_ms, TL_ETA_CAPACITY_LOWERED).median_s, 45 + 105 * 12, 0.15);
    /* Raised again: free capacity is filled at once. */
    for (int i = 0; i < 15; i++)
        step(&world, TL_EVENT_FREED, &world.ended, 1, now_ms += 3000);
    tl_eta_set_rule(&world.eta, &(struct tl_eta_rule){.counted = true, .capacity = 20}, now_ms);
    assert_true(ask(&world, 15, now_ms, TL_ETA_CAPACITY_LOWERED).high_s < 1);
    assert_true(ask(&world, 105, now_ms, TL_ETA_CAPACITY_LOWERED).median_s < 105 * 4);
    tl_placemap_clear(&world.eta.sessions.running);
}

static void test_no_guesses(void **state)
{
    (void)state;
    struct world world;
    start(&world, &(struct tl_eta_rule){.counted = true, .capacity = 20});
    int64_t now_ms = run_steadily(&world, 20);
    tl_eta_set_open(&world.eta, false, now_ms);
    expect_none(&world, now_ms, TL_ETA_PAUSED);
    tl_eta_set_open(&world.eta, true, now_ms + 1000);
    near(ask(&world, 100, now_ms + 1000, TL_ETA_PLAIN).median_s, 300, 0.1);
    tl_eta_set_rule(&world.eta, &(struct tl_eta_rule){.counted = true}, now_ms);
    expect_none(&world, now_ms, TL_ETA_NO_CAPACITY);
    tl_placemap_clear(&world.eta.sessions.running);
}

/* Capacity is free and nobody is admitted: the admitter is away. */
static void test_a_stall(void **state)
{
    (void)state;
    struct world world;
    start(&world, &(struct tl_eta_rule){.counted = true, .capacity = 20});
    int64_t now_ms = run_steadily(&world, 20);
    step(&world, TL_EVENT_FREED, &world.ended, 1, now_ms);
    (void)ask(&world, 10, now_ms + 9000, TL_ETA_PLAIN);
    expect_none(&world, now_ms + 11000, TL_ETA_STALLED);
    step(&world, TL_EVENT_ADMITTED, &world.admitted, 1, now_ms + 12000);
    (void)ask(&world, 10, now_ms + 23000, TL_ETA_PLAIN);
    tl_placemap_clear(&world.eta.sessions.running);
}

/* Those who leave shorten the wait of those behind. */
static void test_visitors_leave(void **state)
{
    (void)state;
    struct world world;
    start(&world, &(struct tl_eta_rule){.counted = true, .capacity = 20});
    int64_t now_ms = run_steadily(&world, 20);
    double before_s = ask(&world, 1000, now_ms, TL_ETA_PLAIN).median_s;
    /* One in a thousand leaves each second: those behind 1,000 wait ln(1 + 3) * 1,000 s. */
    struct tl_run run = {.first = 1, .count = 4900 / 1000 * (uint64_t)now_ms / 1000};
    struct tl_event event = {.kind = TL_EVENT_REMOVED, .places = {.n = 1, .runs = &run}};
    struct tl_event_entry entry = {.waiting = 4000, .active = 20, .n_events = 1, .events = &event};
    tl_eta_apply(&world.eta, &entry, now_ms);
    double after_s = ask(&world, 1000, now_ms + 1000, TL_ETA_PLAIN).median_s;
    near(before_s, 3000, 0.1);
    near(after_s, 1386, 0.2);
    tl_placemap_clear(&world.eta.sessions.running);
}

/* By rate alone the rule says the wait, before any admission was seen; never longer than as many
 * periods as the position fills. */
static void test_a_rate_says_the_wait(void **state)
{
    (void)state;
    static const uint64_t positions[] = {1, 30, 100, 101, 12345};
    for (int batches = 0; batches <= 1; batches++) {
        struct world world;
        start(&world,
              &(struct tl_eta_rule){.admit = 100, .every_ms = 10000, .batches = batches == 1});
        step(&world, TL_EVENT_JOINED, &world.joined, 20000, 1000);
        for (size_t i = 0; i < sizeof(positions) / sizeof(positions[0]); i++) {
            double most_s = ceil((double)positions[i] / 100) * 10;
            struct tl_eta_range range = ask(&world, positions[i], 2000, TL_ETA_PLAIN);
            assert_true(range.high_s <= most_s);
            assert_true(range.low_s >= most_s - 10 - 0.1 - 1e-9);
            if (!batches)
                near(range.median_s, (double)positions[i] / 10, 1e-9);
        }
        tl_placemap_clear(&world.eta.sessions.running);
    }
}

/* An admitter that is gone: the rate promises what no one keeps. */
static void test_a_rate_that_is_not_kept_says_nothing(void **state)
{
    (void)state;
    struct world world;
    start(&world, &(struct tl_eta_rule){.admit = 10, .every_ms = 10000});
    step(&world, TL_EVENT_JOINED, &world.joined, 100, 0);
    (void)ask(&world, 10, 11000, TL_ETA_PLAIN);
    expect_none(&world, 13000, TL_ETA_STALLED);
    step(&world, TL_EVENT_ADMITTED, &world.admitted, 1, 14000);
    near(ask(&world, 10, 14000, TL_ETA_PLAIN).median_s, 10, 1e-9);
    tl_eta_set_open(&world.eta, false, 20000); /* a pause is not a stall */
    tl_eta_set_open(&world.eta, true, 60000);
    (void)ask(&world, 10, 70000, TL_ETA_PLAIN);
    tl_eta_set_rule(&world.eta, &(struct tl_eta_rule){.admit = 5, .every_ms = 10000}, 70000);
    near(ask(&world, 10, 70000, TL_ETA_RATE_LOWERED).median_s, 20, 1e-9);
    (void)ask(&world, 10, 71999, TL_ETA_RATE_LOWERED);
    tl_placemap_clear(&world.eta.sessions.running);
}

/* With a capacity as well, the sessions count, but it cannot be faster than the rate. */
static void test_a_rate_beside_a_capacity_is_a_bound(void **state)
{
    (void)state;
    struct world world;
    struct tl_eta_rule rule = {.counted = true, .capacity = 20, .admit = 10, .every_ms = 60000};
    start(&world, &rule);
    expect_none(&world, 1000, TL_ETA_NOT_KNOWN);
    int64_t now_ms = run_steadily(&world, 20);
    near(ask(&world, 50, now_ms, TL_ETA_PLAIN).median_s, 300, 0.02);
    rule.every_ms = 1000;
    tl_eta_set_rule(&world.eta, &rule, now_ms);
    near(ask(&world, 50, now_ms, TL_ETA_PLAIN).median_s, 150, 0.1);
    tl_placemap_clear(&world.eta.sessions.running);
}

/* Sessions become twice as long: the estimate follows, and says that it has grown. */
static void test_a_slower_site_is_named(void **state)
{
    (void)state;
    struct world world;
    struct tl_line *line = tl_line_new();
    struct tl_promises promises = {.random = 1};
    struct tl_eta_range range = {0};
    enum tl_eta_reason reason;
    assert_true(line != NULL);
    start(&world, &(struct tl_eta_rule){.counted = true, .capacity = 20});
    assert_true(tl_line_add_waiting(line, tl_place_make(0, 3000), 200));
    int64_t now_ms = run_steadily(&world, 20);
    tl_promises_tick(&promises, &world.eta, line, now_ms);
    (void)ask(&world, 100, now_ms, TL_ETA_PLAIN);
    int named = 0;
    for (uint64_t i = 0; i < 100; i++) {
        step(&world, TL_EVENT_FREED, &world.ended, 1, now_ms += 9000);
        step(&world, TL_EVENT_ADMITTED, &world.admitted, 1, now_ms);
        tl_promises_tick(&promises, &world.eta, line, now_ms);
        assert_true(tl_eta_estimate(&world.eta, 100, now_ms, &range, &reason));
        assert_true(reason == TL_ETA_SLOWER || reason == TL_ETA_PLAIN);
        named += reason == TL_ETA_SLOWER;
    }
    assert_true(named > 5);
    assert_true(range.median_s > 600);
    (void)ask(&world, 100, now_ms + 600000, TL_ETA_PLAIN); /* named for a minute */
    tl_line_free(&line);
    tl_placemap_clear(&world.eta.sessions.running);
}

/* ---- how many were admitted during the last minute ---- */

#define START INT64_C(1000000)

static void admit(struct tl_eta *eta, uint64_t count, int64_t now_ms)
{
    struct tl_run run = {.first = 1, .count = count};
    struct tl_event events[] = {
        {.kind = TL_EVENT_ADMITTED, .places = {.n = 1, .runs = &run}},
        {.kind = TL_EVENT_FREED, .places = {.n = 1, .runs = &run}}, /* does not count */
    };
    const struct tl_event_entry entry = {.n_events = 2, .events = events};
    tl_eta_apply(eta, &entry, now_ms);
}

static uint64_t minute(const struct tl_eta *eta, int64_t now_ms)
{
    uint64_t count;
    assert_true(tl_eta_admitted(eta, now_ms, &count));
    return count;
}

static void test_a_minute_is_seen_before_it_is_told(void **state)
{
    (void)state;
    struct tl_eta eta = {0};
    struct tl_line *line = tl_line_new();
    uint64_t count;
    assert_true(line != NULL);
    assert_false(tl_eta_admitted(&eta, START, &count));
    tl_eta_set_line(&eta, line, START);
    admit(&eta, 3, START + 1000);
    assert_false(tl_eta_admitted(&eta, START + 59999, &count));
    assert_int_equal(minute(&eta, START + 60000), 3);
    tl_eta_set_line(&eta, line, START + 60000);
    assert_false(tl_eta_admitted(&eta, START + 60000, &count));
    assert_int_equal(minute(&eta, START + 120000), 0);
    tl_line_free(&line);
    tl_placemap_clear(&eta.sessions.running);
}

static void test_what_is_older_is_forgotten(void **state)
{
    (void)state;
    struct tl_eta eta = {0};
    struct tl_line *line = tl_line_new();
    assert_true(line != NULL);
    tl_eta_set_line(&eta, line, START);
    for (int64_t i = 0; i < 20; i++)
        admit(&eta, 2, START + i * 10000);
    int64_t now_ms = START + 190000;
    assert_int_equal(minute(&eta, now_ms), 14);
    assert_int_equal(minute(&eta, now_ms + 30000), 8);
    assert_int_equal(minute(&eta, now_ms + 70000), 0);
    admit(&eta, 5, now_ms + INT64_C(1000000000));
    assert_int_equal(minute(&eta, now_ms + INT64_C(1000000000)), 5);
    tl_line_free(&line);
    tl_placemap_clear(&eta.sessions.running);
}

/* ---- what came true ---- */

static void expect_news(struct tl_promises *promises, enum tl_promises_reader reader,
                        int64_t since_ms, uint64_t judged, uint64_t late)
{
    const struct tl_promises_news news = tl_promises_take(promises, reader);
    const uint64_t *counts = news.counts;
    assert_int_equal(news.since_ms, since_ms);
    assert_int_equal(counts[TL_PROMISED_ETA_JUDGED], judged);
    assert_int_equal(counts[TL_PROMISED_ETA_EARLY], 0);
    assert_int_equal(counts[TL_PROMISED_ETA_LATE], late);
    assert_int_equal(counts[TL_PROMISED_ETA_ERROR] > 0, late > 0);
}

/* All of those who were told are called at once, long after what they were told. */
static void test_each_reader_gets_what_came_true_once(void **state)
{
    (void)state;
    struct world world;
    struct tl_line *line = tl_line_new();
    struct tl_promises promises = {.random = 1};
    struct tl_run run = {.first = tl_place_make(0, 3000), .count = 200};
    struct tl_event event = {
        .kind = TL_EVENT_ADMITTED, .places = {.n = 1, .runs = &run}, .deadline_ms = 1};
    struct tl_event_entry entry = {.number = 1, .n_events = 1, .events = &event, .active = 200};
    assert_true(line != NULL);
    start(&world, &(struct tl_eta_rule){.counted = true, .capacity = 20});
    assert_true(tl_line_add_waiting(line, run.first, run.count));
    int64_t now_ms = run_steadily(&world, 20);
    tl_promises_tick(&promises, &world.eta, line, now_ms); /* one of each class */
    expect_news(&promises, TL_PROMISES_STORE, 0, 0, 0);
    now_ms += 36000000;
    assert_int_equal(tl_line_apply(line, &entry, now_ms), TL_LINE_APPLIED);
    tl_promises_apply(&promises, line, &entry, now_ms);
    expect_news(&promises, TL_PROMISES_METRICS, now_ms, 4, 4);
    expect_news(&promises, TL_PROMISES_METRICS, 0, 0, 0);
    expect_news(&promises, TL_PROMISES_STORE, now_ms, 4, 4);
    expect_news(&promises, TL_PROMISES_STORE, 0, 0, 0);
    tl_line_free(&line);
    tl_placemap_clear(&world.eta.sessions.running);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sessions_say_the_wait),
        cmocka_unit_test(test_a_lowered_capacity_counts_at_once),
        cmocka_unit_test(test_no_guesses),
        cmocka_unit_test(test_a_stall),
        cmocka_unit_test(test_visitors_leave),
        cmocka_unit_test(test_a_rate_says_the_wait),
        cmocka_unit_test(test_a_rate_that_is_not_kept_says_nothing),
        cmocka_unit_test(test_a_rate_beside_a_capacity_is_a_bound),
        cmocka_unit_test(test_a_slower_site_is_named),
        cmocka_unit_test(test_a_minute_is_seen_before_it_is_told),
        cmocka_unit_test(test_what_is_older_is_forgotten),
        cmocka_unit_test(test_each_reader_gets_what_came_true_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
