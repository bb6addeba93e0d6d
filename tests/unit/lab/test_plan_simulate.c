/* SPDX-License-Identifier: Apache-2.0 */
/* The simulation of `tellerline plan`: by hand, and what must hold for any crowd and settings. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lab/simulate.h"
#include "tests/unit/random.h"

static void assert_near(double found, double expected, double distance)
{
    if (!(found >= expected - distance && found <= expected + distance))
        fail_msg("%f is not %f", found, expected);
}

/* A session nobody's length reaches, and times that do not matter. */
static const struct tl_queue_settings counter = {.policy = TL_POLICY_COUNTER,
                                                 .capacity = 1,
                                                 .session_ttl_ms = 1000000,
                                                 .claim_ttl_ms = 1000,
                                                 .waiting_ttl_ms = 1000};

/* Runs visitors who come at these times and stay for these. */
static struct tl_simulation *run(const struct tl_queue_settings *settings,
                                 const struct tl_simulation_visitors *visitors, size_t n,
                                 const int64_t at_ms[], const int64_t session_ms[])
{
    struct tl_arrivals arrivals = {.n = n, .list = calloc(n, sizeof(struct tl_arrival))};
    assert_non_null(arrivals.list);
    for (size_t i = 0; i < n; i++)
        arrivals.list[i] = (struct tl_arrival){.at_ms = at_ms[i],
                                               .session_ms = session_ms != NULL ? session_ms[i] : 0,
                                               .row = (uint32_t)i};
    struct tl_simulation *simulation = tl_simulation_run(settings, visitors, &arrivals);
    assert_non_null(simulation);
    tl_arrivals_free(&arrivals);
    return simulation;
}

static void assert_admitted(const struct tl_queue_settings *settings, size_t n,
                            const int64_t at_ms[], const int64_t session_ms[],
                            const int64_t expected_ms[])
{
    static const struct tl_simulation_visitors calm = {.seed = 1};
    struct tl_simulation *simulation = run(settings, &calm, n, at_ms, session_ms);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(simulation->visitors[i].admitted_ms, expected_ms[i]);
    assert_int_equal(simulation->served, n);
    tl_simulation_free(&simulation);
    tl_simulation_free(&simulation);
}

static void test_counters(void **state)
{
    (void)state;
    struct tl_queue_settings settings = counter;
    assert_admitted(&settings, 3, (int64_t[]){0, 0, 0}, (int64_t[]){2000, 2000, 2000},
                    (int64_t[]){0, 2000, 4000});
    assert_admitted(&settings, 3, (int64_t[]){0, 10, 11}, (int64_t[]){2, 5, 1},
                    (int64_t[]){0, 10, 15});
    settings.capacity = 2;
    assert_admitted(&settings, 4, (int64_t[]){0, 0, 0, 0}, (int64_t[]){2, 3, 2, 0},
                    (int64_t[]){0, 0, 2, 3});
    settings.opens_at_ms = 100;
    assert_admitted(&settings, 3, (int64_t[]){0, 7, 200}, (int64_t[]){50, 50, 50},
                    (int64_t[]){100, 100, 200});
    settings.session_ttl_ms = 10; /* cuts the first two */
    assert_admitted(&settings, 3, (int64_t[]){100, 100, 100}, (int64_t[]){50, 20, 5},
                    (int64_t[]){100, 100, 110});
}

static void test_rate(void **state)
{
    (void)state;
    struct tl_queue_settings settings = counter;
    settings.policy = TL_POLICY_RATE;
    settings.rate.admit = 2;
    settings.rate.every_ms = 10000;
    const int64_t at[] = {0, 0, 0, 0, 0, 60000, 60000, 60001};
    assert_admitted(&settings, 8, at, NULL,
                    (int64_t[]){0, 5000, 10000, 15000, 20000, 60000, 65000, 70000});
    settings.rate.burst = 1; /* one more at once, after a pause */
    assert_admitted(&settings, 8, at, NULL,
                    (int64_t[]){0, 0, 5000, 10000, 15000, 60000, 60000, 65000});
    settings.rate.burst = 0;
    settings.rate.shape = TL_RATE_LUMPS;
    assert_admitted(&settings, 8, at, NULL,
                    (int64_t[]){0, 0, 10000, 10000, 20000, 60000, 60000, 70000});
    /* Three in a second do not divide it: slots of whole milliseconds, of which the one before the
     * first visitor has not lapsed yet. No second has four. */
    settings.rate.shape = TL_RATE_SMOOTH;
    settings.rate.admit = 3;
    settings.rate.every_ms = 1000;
    assert_admitted(&settings, 4, (int64_t[]){0, 0, 0, 0}, NULL, (int64_t[]){0, 333, 667, 1000});
    /* The store admits at most every 20 ms, so two at a time here. Those of the last 100 ms, which
     * nobody took, come at once, and the next period begins so much later. */
    settings.rate.admit = 1000;
    settings.rate.every_ms = 10000;
    assert_admitted(&settings, 14, (int64_t[14]){0}, NULL,
                    (int64_t[14]){[10] = 100, 100, 120, 120});
    /* What a lump cannot use, because the slots are taken, lapses. */
    settings =
        (struct tl_queue_settings){.policy = TL_POLICY_BOTH,
                                   .capacity = 1,
                                   .rate = {.admit = 2, .every_ms = 100, .shape = TL_RATE_LUMPS},
                                   .session_ttl_ms = 1000};
    assert_admitted(&settings, 3, (int64_t[]){0, 0, 0}, (int64_t[]){30, 30, 30},
                    (int64_t[]){0, 100, 200});
}

/* Two who never come hold the only slot for claim_ttl each; a longer line than max_waiting refuses.
 */
static void test_no_shows_and_refused(void **state)
{
    (void)state;
    struct tl_simulation_visitors visitors = {.no_shows = 0.999999999, .seed = 3};
    struct tl_simulation *simulation =
        run(&counter, &visitors, 2, (int64_t[]){0, 0}, (int64_t[]){5, 5});
    assert_int_equal(simulation->no_shows, 2);
    assert_int_equal(simulation->served, 0);
    assert_int_equal(simulation->visitors[1].admitted_ms, 1000);
    assert_int_equal(simulation->end_ms, 2000);
    assert_true(simulation->slots_no_shows == 1 && simulation->slots_empty == 0);
    tl_simulation_free(&simulation);

    struct tl_queue_settings settings = counter;
    settings.max_waiting = 2;
    visitors.no_shows = 0;
    simulation =
        run(&settings, &visitors, 4, (int64_t[]){0, 1, 2, 3}, (int64_t[]){100, 100, 100, 100});
    assert_int_equal(simulation->refused, 1);
    assert_int_equal(simulation->visitors[3].admitted_ms, -1);
    assert_int_equal(simulation->longest_line, 2);
    assert_int_equal(simulation->longest_line_at_ms, 2);
    assert_int_equal(simulation->line_empty_from_ms, 200);
    assert_int_equal(simulation->line_ms, 199);
    assert_int_equal(simulation->all.waits.longest_ms, 198);
    assert_int_equal(simulation->all.waits.median_ms, 99);
    tl_simulation_free(&simulation);
}

/* Without a slot everyone waits for ever, or until they lose patience and then their place. */
static void test_nobody_is_admitted(void **state)
{
    (void)state;
    struct tl_queue_settings settings = counter;
    struct tl_simulation_visitors visitors = {.seed = 5};
    settings.capacity = 0;
    struct tl_simulation *simulation =
        run(&settings, &visitors, 3, (int64_t[]){0, 1, 2}, (int64_t[]){1, 1, 1});
    assert_int_equal(simulation->still_waiting, 3);
    assert_int_equal(simulation->line_empty_from_ms, -1);
    tl_simulation_free(&simulation);

    visitors.patience_ms = 100;
    simulation = run(&settings, &visitors, 3, (int64_t[]){0, 1, 2}, (int64_t[]){1, 1, 1});
    assert_int_equal(simulation->gave_up, 3);
    assert_int_equal(simulation->still_waiting, 0);
    assert_true(simulation->end_ms > 1000 && simulation->line_empty_from_ms == simulation->end_ms);
    tl_simulation_free(&simulation);
}

/* ---- any crowd, any settings ---- */

static struct tl_queue_settings random_settings(uint64_t *seed)
{
    return (struct tl_queue_settings){
        .policy = (enum tl_policy)random_below(seed, 3),
        .capacity = 1 + random_below(seed, 20),
        .rate = {.admit = 1 + random_below(seed, 12),
                 .every_ms = 100 + (int64_t)random_below(seed, 10000),
                 .shape = random_below(seed, 3) == 0 ? TL_RATE_LUMPS : TL_RATE_SMOOTH,
                 .burst = random_below(seed, 2) * random_below(seed, 10)},
        .session_ttl_ms = 500 + (int64_t)random_below(seed, 5000),
        .claim_ttl_ms = 1 + (int64_t)random_below(seed, 1000),
        .waiting_ttl_ms = 1000 + (int64_t)random_below(seed, 5000),
        .opens_at_ms = (int64_t)(random_below(seed, 2) * random_below(seed, 20000)),
        .max_waiting = random_below(seed, 3) == 0 ? 1 + random_below(seed, 100) : 0,
    };
}

static int by_time(const void *a, const void *b)
{
    int64_t one = *(const int64_t *)a;
    int64_t other = *(const int64_t *)b;
    return one < other ? -1 : one > other;
}

/* At most so many slots are taken at any moment: at the k-th admission, those that were freed. */
static void check_capacity(const struct tl_simulation *simulation, size_t n, uint64_t capacity)
{
    int64_t *freed = calloc(n, sizeof(*freed));
    size_t n_freed = 0;
    assert_non_null(freed);
    for (size_t i = 0; i < n; i++)
        if (simulation->visitors[i].admitted_ms >= 0)
            freed[n_freed++] = simulation->visitors[i].freed_ms;
    qsort(freed, n_freed, sizeof(*freed), by_time);
    size_t ended = 0;
    uint64_t admitted = 0;
    for (size_t i = 0; i < n; i++) {
        int64_t at = simulation->visitors[i].admitted_ms;
        if (at < 0)
            continue;
        admitted++;
        while (ended < n_freed && freed[ended] <= at)
            ended++;
        /* One whose session has no length was freed at once, maybe before it is counted here. */
        assert_true(admitted <= ended + capacity);
    }
    free(freed);
}

/* Admissions are in order of arrival; no window of every_ms holds more than the rate allows, and
 * lumps are that far apart. */
static void check_order_and_rate(const struct tl_queue_settings *settings,
                                 const struct tl_arrivals *arrivals,
                                 const struct tl_simulation *simulation)
{
    int64_t *times = calloc(arrivals->n, sizeof(*times));
    size_t count = 0;
    assert_non_null(times);
    for (size_t i = 0; i < arrivals->n; i++) {
        int64_t at = simulation->visitors[i].admitted_ms;
        if (at < 0)
            continue;
        assert_true(at >= arrivals->list[i].at_ms && at >= settings->opens_at_ms);
        assert_true(count == 0 || at >= times[count - 1]);
        times[count++] = at;
    }
    uint64_t limit =
        settings->rate.admit + (settings->rate.shape == TL_RATE_LUMPS ? 0 : settings->rate.burst);
    for (size_t i = 0; settings->policy != TL_POLICY_COUNTER && i + limit < count; i++)
        assert_true(times[i + limit] - times[i] >= settings->rate.every_ms);
    for (size_t i = 1; settings->policy != TL_POLICY_COUNTER &&
                       settings->rate.shape == TL_RATE_LUMPS && i < count;
         i++)
        assert_true(times[i] == times[i - 1] || times[i] - times[i - 1] >= settings->rate.every_ms);
    assert_int_equal(count, simulation->served + simulation->no_shows);
    free(times);
}

static void check_series(const struct tl_simulation *simulation)
{
    const struct tl_series *series = &simulation->series;
    uint64_t arrived = 0;
    uint64_t admitted = 0;
    uint64_t waiting = 0;
    uint64_t active = 0;
    for (size_t i = 0; i < series->n; i++) {
        const struct tl_series_point *point = &series->points[i];
        arrived += point->arrived;
        admitted += point->admitted;
        waiting = point->waiting > waiting ? point->waiting : waiting;
        active = point->active > active ? point->active : active;
    }
    assert_int_equal(arrived, simulation->arrived);
    assert_int_equal(admitted, simulation->served + simulation->no_shows);
    assert_int_equal(waiting, simulation->longest_line);
    assert_int_equal(active, simulation->most_active);
    assert_true((int64_t)series->n * series->width_ms > simulation->end_ms);
    assert_true((int64_t)(series->n - 1) * series->width_ms <= simulation->end_ms);
}

static void test_what_always_holds(void **state)
{
    (void)state;
    uint64_t seed = random_seed("test_what_always_holds");
    for (int round = 0; round < 400; round++) {
        struct tl_arrivals arrivals;
        struct tl_queue_settings settings = random_settings(&seed);
        struct tl_crowd crowd = {.visitors = 1 + random_below(&seed, 500),
                                 .shape = (enum tl_crowd_shape)random_below(&seed, 3),
                                 .over_ms = 1 + (int64_t)random_below(&seed, 60000),
                                 .peak_ms = -1};
        struct tl_simulation_visitors visitors = {
            .session_ms = (int64_t)random_below(&seed, 3000),
            .spread = (double)random_below(&seed, 3) / 2,
            .no_shows = (double)random_below(&seed, 3) / 4,
            .patience_ms = (int64_t)(random_below(&seed, 2) * random_below(&seed, 30000)),
            .seed = seed};
        tl_arrivals_draw(&crowd, seed, &arrivals);
        struct tl_simulation *simulation = tl_simulation_run(&settings, &visitors, &arrivals);
        assert_non_null(simulation);
        assert_int_equal(simulation->arrived, crowd.visitors);
        assert_int_equal(simulation->still_waiting,
                         0); /* in the end everyone was called or has left */
        assert_int_equal(simulation->arrived, simulation->served + simulation->no_shows +
                                                  simulation->gave_up + simulation->refused);
        if (visitors.patience_ms == 0)
            assert_int_equal(simulation->gave_up, 0);
        check_order_and_rate(&settings, &arrivals, simulation);
        check_series(simulation);
        if (settings.policy != TL_POLICY_RATE) {
            check_capacity(simulation, arrivals.n, settings.capacity);
            assert_true(simulation->most_active <= settings.capacity);
            double shares = simulation->slots_empty + simulation->slots_no_shows;
            assert_true(simulation->slots_empty >= 0 && shares <= 1.000001);
        }
        if (settings.policy == TL_POLICY_COUNTER) /* no slot is empty while someone waits */
            assert_true(simulation->slots_empty_in_line == 0);

        struct tl_simulation *again = tl_simulation_run(&settings, &visitors, &arrivals);
        assert_non_null(again);
        assert_memory_equal(again->visitors, simulation->visitors,
                            arrivals.n * sizeof(*again->visitors));
        assert_memory_equal(&again->series, &simulation->series, sizeof(again->series));
        tl_simulation_free(&again);
        tl_simulation_free(&simulation);
        tl_arrivals_free(&arrivals);
    }
}

/* Sessions are log-normal around their mean, whatever the spread. */
static void test_session_mean(void **state)
{
    (void)state;
    struct tl_queue_settings settings = counter;
    struct tl_simulation_visitors visitors = {.session_ms = 10000, .spread = 0.5, .seed = 7};
    struct tl_arrivals arrivals;
    struct tl_crowd crowd = {.visitors = 50000, .shape = TL_CROWD_EVEN, .over_ms = 1000};
    settings.policy = TL_POLICY_RATE;
    settings.rate.admit = 1000000;
    settings.rate.every_ms = 1000;
    tl_arrivals_draw(&crowd, 7, &arrivals);
    struct tl_simulation *simulation = tl_simulation_run(&settings, &visitors, &arrivals);
    assert_non_null(simulation);
    double sum = 0;
    for (size_t i = 0; i < arrivals.n; i++)
        sum += (double)(simulation->visitors[i].freed_ms - simulation->visitors[i].admitted_ms);
    assert_near(sum / (double)arrivals.n, 10000, 100); /* five standard errors are 112 */
    tl_simulation_free(&simulation);
    tl_arrivals_free(&arrivals);
}

/* All come at once, one after the other; each lane has half of them. */
static void test_lanes(void **state)
{
    (void)state;
    enum { HALF = 400 };
    struct tl_queue_settings settings = counter;
    struct tl_simulation_visitors visitors = {.seed = 3, .lanes = {0.5, 0.5}};
    int64_t at_ms[2 * HALF] = {0};
    int64_t session_ms[2 * HALF];
    for (int i = 0; i < 2 * HALF; i++)
        session_ms[i] = 1;
    settings.n_lanes = 2;
    settings.default_lane = 1;
    struct tl_simulation *simulation = run(&settings, &visitors, 2 * HALF, at_ms, session_ms);
    const struct tl_met *lanes = simulation->lanes;
    assert_int_equal(lanes[0].arrived + lanes[1].arrived, 2 * HALF);
    assert_near((double)lanes[0].arrived, HALF, 70); /* five standard errors */
    assert_int_equal(lanes[0].admitted, lanes[0].arrived);
    assert_int_equal(lanes[1].admitted, lanes[1].arrived);
    /* vip strictly first */
    assert_int_equal(lanes[1].passed_by, lanes[0].arrived);
    assert_int_equal(lanes[0].passed_by, 0);
    int64_t before = -1;
    for (int i = 0; i < 2 * HALF; i++) {
        bool vip = tl_visitor_lane(&visitors, (size_t)i) == 0;
        int64_t admitted_ms = simulation->visitors[i].admitted_ms;
        assert_int_equal(vip, admitted_ms < (int64_t)lanes[0].arrived);
        assert_true(!vip || admitted_ms > before); /* in a lane, who came first */
        before = vip ? admitted_ms : before;
    }
    tl_simulation_free(&simulation);

    settings.lane_weights = (struct tl_weights){.n = 2, .of = {3, 1}};
    simulation = run(&settings, &visitors, 2 * HALF, at_ms, session_ms);
    lanes = simulation->lanes;
    assert_int_equal(lanes[1].passed_by, 3);
    assert_int_equal(lanes[0].passed_by, 1);
    unsigned vips = 0;
    for (int i = 0; i < 2 * HALF; i++)
        vips += tl_visitor_lane(&visitors, (size_t)i) == 0 &&
                simulation->visitors[i].admitted_ms < HALF;
    assert_near(vips, 0.75 * HALF, 1);
    tl_simulation_free(&simulation);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counters),
        cmocka_unit_test(test_rate),
        cmocka_unit_test(test_no_shows_and_refused),
        cmocka_unit_test(test_nobody_is_admitted),
        cmocka_unit_test(test_what_always_holds),
        cmocka_unit_test(test_session_mean),
        cmocka_unit_test(test_lanes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
