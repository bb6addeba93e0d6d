/* SPDX-License-Identifier: Apache-2.0 */
/* Who comes in which lane, and what is said of a lane. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lab/simulate.h"

static const struct tl_queue_settings queue = {
    .n_lanes = 3, .lanes = {"vip", "club", "normal"}, .default_lane = 2};

static void assert_shares(const char *text, const double expected[3])
{
    struct tl_error err = {0};
    double shares[TL_LANES_MAX];
    if (!tl_lanes_shares(text, &queue, shares, &err))
        fail_msg("%s: %s", text, err.text);
    for (int i = 0; i < 3; i++) {
        if (shares[i] < expected[i] - 1e-9 || shares[i] > expected[i] + 1e-9)
            fail_msg("%s: lane %d has %f", text != NULL ? text : "none", i, shares[i]);
    }
}

static void test_shares(void **state)
{
    (void)state;
    assert_shares(NULL, (double[]){0, 0, 1});
    assert_shares("vip=10%", (double[]){0.1, 0, 0.9});
    assert_shares("club=0.25,vip=0.5", (double[]){0.5, 0.25, 0.25});
    assert_shares("vip=0.1,club=0.2,normal=0.7", (double[]){0.1, 0.2, 0.7});
    assert_shares("normal=50%", (double[]){0, 0, 1}); /* the others are there, too */
    assert_shares("club=100%", (double[]){0, 1, 0});
}

static void test_wrong_shares(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "",
        "vip",
        "vip=",
        "vip=-1",
        "vip=x",
        "vip=1.5",
        "vip=101%",
        "gold=1%",
        "=1%",
        "vip=1%,",
        "vip=1%,,",
        "vip=1%;",
        "vip=1%,vip=1%",
        "vip=60%,club=41%",
        "vip=10% ",
        "VIP=1%",
        "vip=0.000000000000000000000000000000000000000000000000000000000001",
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct tl_error err = {0};
        double shares[TL_LANES_MAX];
        if (tl_lanes_shares(wrong[i], &queue, shares, &err))
            fail_msg("%s is accepted", wrong[i]);
        assert_int_equal(err.kind, TL_ERR_INVALID);
        assert_int_equal(strncmp(err.text, "--lanes: ", 9), 0);
    }
}

static void test_times(void **state)
{
    (void)state;
    int64_t list[] = {7, 1, 3, 2, 10, 9, 8, 4, 5, 6};
    struct tl_times times = tl_times_of(list, 10);
    assert_int_equal(times.median_ms, 5);
    assert_int_equal(times.p90_ms, 9);
    assert_int_equal(times.longest_ms, 10);
    times = tl_times_of(list, 1);
    assert_true(times.median_ms == 1 && times.p90_ms == 1 && times.longest_ms == 1);
    times = tl_times_of(list, 0);
    assert_true(times.median_ms == -1 && times.p90_ms == -1 && times.longest_ms == -1);
}

static bool starved(const struct tl_queue_settings *of, unsigned lane, uint64_t passed)
{
    const struct tl_met met = {.passed_by = passed};
    return tl_lane_starved(of, lane, &met);
}

static void test_starved(void **state)
{
    (void)state;
    struct tl_queue_settings weighed = queue;
    weighed.lane_weights = (struct tl_weights){.n = 3, .of = {6, 3, 1}};
    assert_false(starved(&queue, 2, 30));
    assert_true(starved(&queue, 2, 31));
    assert_false(starved(&weighed, 2, 100));
    assert_true(starved(&weighed, 2, 101));
    assert_true(starved(&weighed, 0, 17));
    assert_false(starved(&weighed, 0, 16));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shares),
        cmocka_unit_test(test_wrong_shares),
        cmocka_unit_test(test_times),
        cmocka_unit_test(test_starved),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
