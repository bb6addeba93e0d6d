/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "worker/queue/presence.h"

static void expect_run(struct tl_presence *presence, uint64_t first, uint64_t count)
{
    struct tl_run run;
    assert_true(tl_presence_take(presence, &run));
    assert_int_equal(run.first, first);
    assert_int_equal(run.count, count);
}

static void expect_end(struct tl_presence *presence)
{
    struct tl_run run;
    assert_false(tl_presence_take(presence, &run));
}

static void test_runs(void **state)
{
    (void)state;
    struct tl_presence *presence = tl_presence_new(NULL);
    static const uint64_t seqs[] = {9, 3, 4, 5, 5, 9, 4, 1000000, 12};
    for (size_t i = 0; i < sizeof(seqs) / sizeof(seqs[0]); i++)
        tl_presence_mark(presence, seqs[i]);
    assert_true(tl_presence_due(presence, 1000, 100, true));
    expect_run(presence, 3, 3);
    tl_presence_mark(presence, 4); /* seen again meanwhile: that is for the next flush */
    assert_true(tl_presence_due(presence, 1001, 100, true));
    expect_run(presence, 9, 1);
    expect_run(presence, 12, 1);
    expect_run(presence, 1000000, 1);
    expect_end(presence);
    expect_end(presence);

    assert_false(tl_presence_due(presence, 1099, 100, true));
    assert_true(tl_presence_due(presence, 1100, 100, true));
    expect_run(presence, 4, 1);
    expect_end(presence);
    tl_presence_free(&presence);
    assert_null(presence);
}

static void test_nobody(void **state)
{
    (void)state;
    struct tl_presence *presence = tl_presence_new(NULL);
    assert_false(tl_presence_due(presence, 1000, 100, false));
    /* A waiting visitor is not reported yet: a report is due, once. */
    assert_true(tl_presence_due(presence, 1000, 100, true));
    expect_run(presence, 0, 0);
    expect_end(presence);
    assert_false(tl_presence_due(presence, 1050, 100, true));
    assert_true(tl_presence_due(presence, 1100, 100, true));
    expect_run(presence, 0, 0);
    tl_presence_free(&presence);
}

static void test_interval(void **state)
{
    (void)state;
    assert_int_equal(tl_presence_interval(600000), 75000);
    assert_int_equal(tl_presence_interval(100), 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_runs),
        cmocka_unit_test(test_nobody),
        cmocka_unit_test(test_interval),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
