/* SPDX-License-Identifier: Apache-2.0 */
/* What a rehearsal says about each lane, by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lab/figures.h"

enum { N = 12 };

/* Twelve have joined at 0, each second one in lane 1. In each step of 1000 ms one is admitted, and
 * told 50 ms later; order: the lanes of the steps. */
static struct tl_rehearsal line(struct tl_rehearsed visitors[N], const unsigned order[N])
{
    unsigned next[2] = {0, 1};
    for (int i = 0; i < N; i++)
        visitors[i] = (struct tl_rehearsed){.lane = (unsigned)i % 2,
                                            .joins_ms = 0,
                                            .joined_ms = 10,
                                            .called_ms = -1,
                                            .admitted_ms = -1,
                                            .promised_ms = -1,
                                            .gone_ms = -1};
    for (int i = 0; i < N; i++) {
        struct tl_rehearsed *visitor = &visitors[next[order[i]]];
        visitor->admitted_ms = 70000 + 1000 * i;
        visitor->called_ms = 1000 * i + 50;
        next[order[i]] += 2;
    }
    return (struct tl_rehearsal){.n = N, .visitors = visitors};
}

static const unsigned strict[N] = {0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1};
static const unsigned shared[N] = {0, 1, 0, 0, 0, 1, 0, 0, 1, 1, 1, 1};

static void compute(const struct tl_rehearsal *rehearsal, struct tl_met lanes[TL_LANES_MAX])
{
    static const struct tl_queue_settings settings = {.rate.every_ms = 1000};
    struct tl_figures figures;
    tl_figures_compute(rehearsal, &settings, &figures);
    memcpy(lanes, figures.lanes, sizeof(figures.lanes));
}

static void test_passed(void **state)
{
    (void)state;
    struct tl_rehearsed visitors[N];
    struct tl_met lanes[TL_LANES_MAX];
    struct tl_rehearsal rehearsal = line(visitors, strict);
    compute(&rehearsal, lanes);
    assert_int_equal(lanes[1].passed_by, 6);
    assert_int_equal(lanes[0].passed_by, 0); /* it had nobody left */
    rehearsal = line(visitors, shared);
    compute(&rehearsal, lanes);
    assert_int_equal(lanes[1].passed_by, 3);
    assert_int_equal(lanes[0].passed_by, 1);
    assert_int_equal(lanes[2].passed_by, 0);
}

static void test_one_step_has_no_order(void **state)
{
    (void)state;
    struct tl_rehearsed visitors[N];
    struct tl_met lanes[TL_LANES_MAX];
    struct tl_rehearsal rehearsal = line(visitors, strict);
    for (int i = 0; i < N; i++)
        visitors[i].admitted_ms = 70000;
    compute(&rehearsal, lanes);
    assert_int_equal(lanes[0].passed_by + lanes[1].passed_by, 0);
}

static void test_who_gave_up_is_passed_until_then(void **state)
{
    (void)state;
    struct tl_rehearsed visitors[N];
    struct tl_met lanes[TL_LANES_MAX];
    struct tl_rehearsal rehearsal = line(visitors, strict);
    for (int i = 1; i < N; i += 2) {
        visitors[i].admitted_ms = visitors[i].called_ms = -1;
        visitors[i].gone_ms = 3500;
        visitors[i].fate = TL_FATE_GAVE_UP;
    }
    compute(&rehearsal, lanes);
    assert_int_equal(lanes[1].passed_by, 4); /* told at 50, 1050, 2050 and 3050 */
    assert_int_equal(lanes[1].admitted, 0);
    assert_int_equal(lanes[1].waits.median_ms, -1);
    visitors[1].joined_ms = visitors[1].gone_ms = -1; /* refused */
    for (int i = 3; i < N; i += 2)
        visitors[i].joined_ms = 2500;
    compute(&rehearsal, lanes);
    assert_int_equal(lanes[1].passed_by, 1);
}

static void test_told_and_true(void **state)
{
    (void)state;
    struct tl_rehearsed visitors[N];
    struct tl_met lanes[TL_LANES_MAX];
    struct tl_rehearsal rehearsal = line(visitors, strict);
    compute(&rehearsal, lanes);
    assert_int_equal(lanes[0].arrived, 6);
    assert_int_equal(lanes[0].admitted, 6);
    assert_int_equal(lanes[0].waits.median_ms, 2050);
    assert_int_equal(lanes[1].waits.median_ms, 8050);
    assert_int_equal(lanes[1].waits.p90_ms, 11050);
    assert_int_equal(lanes[0].promises, 0);
    assert_int_equal(lanes[0].told_ms, -1);
    for (int i = 0; i < 6; i += 2) { /* of lane 0: they wait 40, 1040 and 2040 more */
        visitors[i].promised_ms = 10;
        visitors[i].low_ms = 500;
        visitors[i].high_ms = 1500;
    }
    compute(&rehearsal, lanes);
    assert_int_equal(lanes[0].promises, 3);
    assert_int_equal(lanes[0].promises_kept, 1);
    assert_int_equal(lanes[0].told_ms, 1000);
    assert_int_equal(lanes[0].true_ms, 1040);
    assert_int_equal(lanes[1].promises, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_passed),
        cmocka_unit_test(test_one_step_has_no_order),
        cmocka_unit_test(test_who_gave_up_is_passed_until_then),
        cmocka_unit_test(test_told_and_true),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
