#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "worker/queue/eta.h"

static const struct tl_eta_rule no_rule;

static void near(double value, double expected, double tolerance)
{
    if (fabs(value - expected) > tolerance * fabs(expected))
        fail_msg("%g is not within %g of %g", value, tolerance, expected);
}

/* A line of 1000 forms in front of `counters` counters, `taken` of them in use; the others are
 * filled in two steps. */
static void form(struct tl_eta *eta, int64_t now_ms, uint64_t counters, uint64_t taken)
{
    uint64_t first = (counters - taken) / 2;
    uint64_t second = counters - taken - first;
    tl_eta_step(eta, now_ms, &(struct tl_eta_step){.waiting = 1000, .active = taken});
    tl_eta_step(
        eta, now_ms + 2,
        &(struct tl_eta_step){.waiting = 1000 - first, .admitted = first, .active = taken + first});
    tl_eta_step(eta, now_ms + 4,
                &(struct tl_eta_step){.waiting = 500, .admitted = second, .active = counters});
}

/* One counter becomes free and is taken again, `n` times, every interval_ms. Returns the time. */
static int64_t admit(struct tl_eta *eta, int64_t now_ms, uint64_t counters, int n,
                     int64_t interval_ms)
{
    for (int i = 0; i < n; i++) {
        now_ms += interval_ms;
        tl_eta_step(eta, now_ms - 1, &(struct tl_eta_step){.waiting = 500, .active = counters - 1});
        tl_eta_step(eta, now_ms,
                    &(struct tl_eta_step){.admitted = 1, .waiting = 500, .active = counters});
    }
    return now_ms;
}

static void test_nothing_seen(void **state)
{
    (void)state;
    struct tl_eta eta = {0};
    struct tl_eta_range range;
    assert_false(tl_eta_estimate(&eta, &no_rule, 1000, 1, &range));
    form(&eta, 1000, 10, 10);
    int64_t now = admit(&eta, 1000, 10, 4, 1000);
    assert_false(tl_eta_estimate(&eta, &no_rule, now, 1, &range));
}

static void test_steady_rate(void **state)
{
    (void)state;
    struct tl_eta eta = {0};
    struct tl_eta_range range;
    form(&eta, 0, 10, 10);
    int64_t now = admit(&eta, 0, 10, 600, 1000);
    assert_true(tl_eta_estimate(&eta, &no_rule, now, 50, &range));
    near(range.mean_s, 50, 0.02);
    assert_true(range.low_s < range.mean_s && range.mean_s < range.high_s);
    assert_true(range.low_s > 30 && range.high_s < 70);
}

static void test_filling_free_places_does_not_count(void **state)
{
    (void)state;
    struct tl_eta eta = {0};
    struct tl_eta_range range;
    form(&eta, 0, 300, 20);
    assert_false(tl_eta_estimate(&eta, &no_rule, 1000, 1, &range));
    int64_t now = admit(&eta, 0, 300, 100, 2000);
    assert_true(tl_eta_estimate(&eta, &no_rule, now, 10, &range));
    near(range.mean_s, 20, 0.03);

    /* Raising the capacity admits some at once, too. */
    tl_eta_step(&eta, now + 1,
                &(struct tl_eta_step){.admitted = 120, .waiting = 500, .active = 420});
    tl_eta_step(&eta, now + 2,
                &(struct tl_eta_step){.admitted = 80, .waiting = 420, .active = 500});
    assert_true(tl_eta_estimate(&eta, &no_rule, now + 2, 10, &range));
    near(range.mean_s, 20, 0.03);

    /* And so it does after it was lowered for a while. */
    tl_eta_step(&eta, now + 3, &(struct tl_eta_step){.waiting = 420, .active = 100});
    tl_eta_limit(&eta, 100);
    tl_eta_step(&eta, now + 4,
                &(struct tl_eta_step){.admitted = 400, .waiting = 20, .active = 500});
    assert_true(tl_eta_estimate(&eta, &no_rule, now + 4, 10, &range));
    near(range.mean_s, 20, 0.03);
}

/* Until every counter was taken again about once, the range is wider than the number of admissions
 * alone would make it. */
static void test_first_sessions_tell_less(void **state)
{
    (void)state;
    struct tl_eta few = {0}, many = {0};
    struct tl_eta_range wide, narrow;
    form(&few, 0, 300, 0);
    form(&many, 0, 30, 0);
    assert_true(tl_eta_estimate(&few, &no_rule, admit(&few, 4, 300, 40, 1000), 100, &wide));
    assert_true(tl_eta_estimate(&many, &no_rule, admit(&many, 4, 30, 40, 1000), 100, &narrow));
    near(wide.mean_s, narrow.mean_s, 0.01);
    assert_true(wide.low_s < 0.9 * narrow.low_s && wide.high_s > 1.3 * narrow.high_s);
}

/* Many counters that become free at once and are taken again in several steps do count. */
static void test_refilling_counts(void **state)
{
    (void)state;
    struct tl_eta eta = {0};
    struct tl_eta_range range;
    form(&eta, 0, 300, 300);
    int64_t now = 0;
    for (int i = 0; i < 100; i++) {
        now += 10000;
        tl_eta_step(&eta, now, &(struct tl_eta_step){.waiting = 900, .active = 280});
        tl_eta_step(&eta, now + 1,
                    &(struct tl_eta_step){.admitted = 15, .waiting = 900, .active = 295});
        tl_eta_step(&eta, now + 2,
                    &(struct tl_eta_step){.admitted = 5, .waiting = 900, .active = 300});
    }
    assert_true(tl_eta_estimate(&eta, &no_rule, now + 2, 100, &range));
    near(range.mean_s, 50, 0.05);
}

static void test_empty_line_does_not_count(void **state)
{
    (void)state;
    struct tl_eta eta = {0};
    struct tl_eta_range range;
    form(&eta, 0, 10, 10);
    int64_t now = admit(&eta, 0, 10, 99, 1000);
    now += 1000;
    tl_eta_step(&eta, now, &(struct tl_eta_step){.admitted = 1, .waiting = 0, .active = 10});
    now += 3600 * 1000; /* an hour without a line */
    form(&eta, now, 10, 2);
    assert_true(tl_eta_estimate(&eta, &no_rule, now, 10, &range));
    near(range.mean_s, 10, 0.05);
}

static void test_old_behaviour_fades(void **state)
{
    (void)state;
    struct tl_eta eta = {0};
    struct tl_eta_range range;
    form(&eta, 0, 10, 10);
    int64_t now = admit(&eta, 0, 10, 1000, 100); /* ten a second... */
    now = admit(&eta, now, 10, 1200, 1000);      /* ...then one a second for twenty minutes */
    assert_true(tl_eta_estimate(&eta, &no_rule, now, 10, &range));
    near(range.mean_s, 10, 0.05);
}

static void test_stall_widens(void **state)
{
    (void)state;
    struct tl_eta eta = {0};
    struct tl_eta_range before, after;
    form(&eta, 0, 10, 10);
    int64_t now = admit(&eta, 0, 10, 100, 1000);
    assert_true(tl_eta_estimate(&eta, &no_rule, now, 10, &before));
    assert_true(tl_eta_estimate(&eta, &no_rule, now + 100000, 10, &after));
    assert_true(after.mean_s > 1.5 * before.mean_s);
    assert_true(after.high_s > 1.5 * before.high_s);
    /* After an idle hour the old estimate is no longer valid. */
    assert_false(tl_eta_estimate(&eta, &no_rule, now + 3600 * 1000, 10, &after));
    /* A pause is not a stall. */
    tl_eta_stop(&eta, now);
    assert_true(tl_eta_estimate(&eta, &no_rule, now + 100000, 10, &after));
    near(after.mean_s, before.mean_s, 1e-9);
}

static double uniform(uint64_t *random)
{
    *random = *random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return ((double)(*random >> 11) + 0.5) / 9007199254740992.0;
}

/* One history of a Poisson process: 60 s of watching, then did the real wait of the k-th fall into
 * the range? */
static bool covered(uint64_t *random, double rate, uint64_t position, bool *known)
{
    struct tl_eta eta = {0};
    struct tl_eta_range range;
    form(&eta, 0, 10, 10);
    double now = 0;
    for (now = -log(uniform(random)) / rate; now < 60; now += -log(uniform(random)) / rate)
        tl_eta_step(&eta, (int64_t)(now * 1000),
                    &(struct tl_eta_step){.admitted = 1, .waiting = 9});
    *known = tl_eta_estimate(&eta, &no_rule, 60000, position, &range);
    for (uint64_t i = 1; i < position; i++)
        now += -log(uniform(random)) / rate;
    return *known && now - 60 >= range.low_s && now - 60 <= range.high_s;
}

/* The range is calibrated: about eight in ten waits end within it, near the front and far back.
 */
static void test_range_is_honest(void **state)
{
    (void)state;
    static const uint64_t positions[] = {1, 3, 30, 300};
    static const double rates[] = {0.3, 2, 30};
    uint64_t random = 20261121;
    for (size_t r = 0; r < 3; r++) {
        for (size_t p = 0; p < 4; p++) {
            int known = 0, within = 0;
            for (int i = 0; i < 2000; i++) {
                bool estimated;
                within += covered(&random, rates[r], positions[p], &estimated);
                known += estimated;
            }
            assert_true(known > 1900);
            double share = (double)within / known;
            if (share < 0.76 || share > 0.88)
                fail_msg("rate %g, position %d: %g covered", rates[r], (int)positions[p], share);
        }
    }
}

/* By rate alone the rule says the wait, before any admission was seen; never longer than as many
 * periods as the position fills. */
static void test_a_rate_says_the_wait(void **state)
{
    (void)state;
    static const uint64_t positions[] = {1, 30, 100, 101, 12345};
    for (int lumps = 0; lumps <= 1; lumps++) {
        const struct tl_eta_rule rule = {
            .admit = 100, .every_ms = 10000, .lumps = lumps == 1, .alone = true};
        struct tl_eta eta = {0};
        tl_eta_step(&eta, 1000, &(struct tl_eta_step){.waiting = 20000});
        for (size_t i = 0; i < sizeof(positions) / sizeof(positions[0]); i++) {
            struct tl_eta_range range;
            double most_s = ceil((double)positions[i] / 100) * 10;
            assert_true(tl_eta_estimate(&eta, &rule, 2000, positions[i], &range));
            assert_true(range.low_s <= range.mean_s && range.mean_s <= range.high_s);
            assert_true(range.high_s <= most_s);
            assert_true(range.low_s >= most_s - 10 - 0.1 - 1e-9);
            if (!lumps)
                near(range.mean_s, (double)positions[i] / 10, 1e-9);
        }
    }
}

/* An admitter that is gone: the rate promises what no one keeps. */
static void test_a_rate_that_is_not_kept_says_nothing(void **state)
{
    (void)state;
    const struct tl_eta_rule rule = {.admit = 10, .every_ms = 10000, .alone = true};
    struct tl_eta eta = {0};
    struct tl_eta_range range;
    tl_eta_step(&eta, 0, &(struct tl_eta_step){.waiting = 100});
    assert_true(tl_eta_estimate(&eta, &rule, 11000, 10, &range));
    assert_false(tl_eta_estimate(&eta, &rule, 13000, 10, &range));
    for (int i = 1; i <= 20; i++)
        tl_eta_step(&eta, 13000 + i * 1000, &(struct tl_eta_step){.admitted = 1, .waiting = 50});
    assert_true(tl_eta_estimate(&eta, &rule, 34000, 10, &range));
    near(range.mean_s, 10, 1e-9);
    assert_true(tl_eta_estimate(&eta, &rule, 94000, 10, &range));
    assert_true(range.mean_s > 20); /* as observed */
    tl_eta_stop(&eta, 34000);       /* a pause is not a stall */
    assert_true(tl_eta_estimate(&eta, &rule, 94000, 10, &range));
    near(range.mean_s, 10, 1e-9);
}

/* With a capacity as well, the observations count, but it cannot be faster than the rate. */
static void test_a_rate_beside_a_capacity_is_a_bound(void **state)
{
    (void)state;
    struct tl_eta_rule rule = {.admit = 10, .every_ms = 20000};
    struct tl_eta eta = {0};
    struct tl_eta_range range;
    form(&eta, 0, 10, 10);
    assert_false(tl_eta_estimate(&eta, &rule, 1000, 10, &range));
    int64_t now = admit(&eta, 0, 10, 100, 1000);
    assert_true(tl_eta_estimate(&eta, &rule, now, 50, &range));
    near(range.mean_s, 100, 1e-9);
    rule.every_ms = 1000;
    assert_true(tl_eta_estimate(&eta, &rule, now, 50, &range));
    near(range.mean_s, 50, 0.05);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_seen),
        cmocka_unit_test(test_steady_rate),
        cmocka_unit_test(test_filling_free_places_does_not_count),
        cmocka_unit_test(test_first_sessions_tell_less),
        cmocka_unit_test(test_refilling_counts),
        cmocka_unit_test(test_empty_line_does_not_count),
        cmocka_unit_test(test_old_behaviour_fades),
        cmocka_unit_test(test_stall_widens),
        cmocka_unit_test(test_range_is_honest),
        cmocka_unit_test(test_a_rate_says_the_wait),
        cmocka_unit_test(test_a_rate_that_is_not_kept_says_nothing),
        cmocka_unit_test(test_a_rate_beside_a_capacity_is_a_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
