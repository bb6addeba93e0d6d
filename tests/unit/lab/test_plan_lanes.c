/* SPDX-License-Identifier: Apache-2.0 */
/* Who comes in which lane, and what is said of a lane. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lab/lanes.h"

static const struct tl_plan_lanes lanes = {
    .n = 3, .names = {"vip", "club", "normal"}, .weights = {0}, .standard = 2};

static void assert_shares(const char *text, const double expected[3])
{
    struct tl_error err = {0};
    double shares[TL_LANES_MAX];
    if (!tl_plan_lanes_shares(text, &lanes, shares, &err))
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
    assert_shares("club=0.25,vip=.5", (double[]){0.5, 0.25, 0.25});
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
        if (tl_plan_lanes_shares(wrong[i], &lanes, shares, &err))
            fail_msg("%s is accepted", wrong[i]);
        assert_int_equal(err.kind, TL_ERR_INVALID);
        assert_int_equal(strncmp(err.text, "--lanes: ", 9), 0);
    }
}

static void test_waits(void **state)
{
    (void)state;
    struct tl_lane_waits waits = {.arrived = 20, .passed = 3};
    int64_t times[] = {7, 1, 3, 2, 10, 9, 8, 4, 5, 6};
    tl_lane_waits_sum(&waits, times, 10);
    assert_int_equal(waits.admitted, 10);
    assert_int_equal(waits.median_ms, 5);
    assert_int_equal(waits.most_ms, 9);
    assert_int_equal(waits.arrived + waits.passed, 23);
    tl_lane_waits_sum(&waits, times, 0);
    assert_int_equal(waits.admitted, 0);
    assert_int_equal(waits.median_ms, -1);
    assert_int_equal(waits.most_ms, -1);
}

static bool starved(const struct tl_plan_lanes *of, unsigned lane, uint64_t passed)
{
    const struct tl_lane_waits waits = {.passed = passed};
    return tl_lane_starved(of, lane, &waits);
}

static void test_starved(void **state)
{
    (void)state;
    struct tl_plan_lanes weighed = lanes;
    weighed.weights = (struct tl_weights){.n = 3, .of = {6, 3, 1}};
    assert_false(starved(&lanes, 2, 30));
    assert_true(starved(&lanes, 2, 31));
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
        cmocka_unit_test(test_waits),
        cmocka_unit_test(test_starved),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
