/* SPDX-License-Identifier: Apache-2.0 */
/* How the admitter follows the store's clock. Times are arguments. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "admitter/store_clock.h"

static void nothing_is_expected_before_the_first_answer(void **state)
{
    (void)state;
    struct tl_store_clock clock = {0};
    assert_int_equal(tl_store_clock_at(&clock, 77), 0);
    tl_store_clock_note(&clock, 1000000, 500, 503);
    assert_int_equal(tl_store_clock_at(&clock, 700), 1000200);
    assert_int_equal(clock.jumped_ms, 0);
}

static void jumps_forward_add_up(void **state)
{
    (void)state;
    struct tl_store_clock clock = {0};
    tl_store_clock_note(&clock, 1000000, 500, 500);
    tl_store_clock_note(&clock, 1003600, 600, 600);
    assert_int_equal(clock.jumped_ms, 3500);
    assert_int_equal(clock.jumped_to_ms, 1003600);
    assert_int_equal(tl_store_clock_at(&clock, 700), 1003700);
    tl_store_clock_note(&clock, 1013700, 700, 700);
    assert_int_equal(clock.jumped_ms, 13500);
    assert_int_equal(clock.jumped_to_ms, 1013700);
}

static void a_late_answer_is_no_jump(void **state)
{
    (void)state;
    struct tl_store_clock clock = {0};
    tl_store_clock_note(&clock, 1000000, 500, 500);
    tl_store_clock_note(&clock, 1000900, 600, 1400);  /* executed at the end of 800 ms... */
    tl_store_clock_note(&clock, 1001000, 1500, 9000); /* ...and at their beginning */
    assert_int_equal(clock.jumped_ms, 0);
    assert_int_equal(tl_store_clock_at(&clock, 1500), 1001000);
}

static void clocks_that_run_apart_are_no_jump(void **state)
{
    (void)state;
    struct tl_store_clock clock = {0};
    for (int64_t at = 0; at < 3600000; at += 400)
        tl_store_clock_note(&clock, 1000000 + at + at / 1000, at, at);
    assert_int_equal(clock.jumped_ms, 0);
    assert_in_range(tl_store_clock_at(&clock, 3600000), 1000000 + 3603600 - 60, 1000000 + 3603600);
}

static void a_clock_that_goes_back_is_followed(void **state)
{
    (void)state;
    struct tl_store_clock clock = {0};
    tl_store_clock_note(&clock, 1000000, 500, 500);
    tl_store_clock_note(&clock, 400000, 600, 610);
    assert_int_equal(clock.jumped_ms, 0);
    assert_int_equal(tl_store_clock_at(&clock, 700), 400100);
    tl_store_clock_note(&clock, 1000300, 800, 800); /* and forward again */
    assert_int_equal(clock.jumped_ms, 600100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_expected_before_the_first_answer),
        cmocka_unit_test(jumps_forward_add_up),
        cmocka_unit_test(a_late_answer_is_no_jump),
        cmocka_unit_test(clocks_that_run_apart_are_no_jump),
        cmocka_unit_test(a_clock_that_goes_back_is_followed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
