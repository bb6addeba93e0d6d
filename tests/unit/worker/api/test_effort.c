/* SPDX-License-Identifier: Apache-2.0 */
/* The difficulty of puzzles follows the joins. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "worker/visit/recent.h"

enum { WINDOW_MS = 5000, WINDOW_S = 5 };

static unsigned bits_at(uint64_t joins_a_second)
{
    struct tl_effort effort = {0};
    for (uint64_t i = 0; i < joins_a_second * WINDOW_S; i++)
        tl_effort_count(&effort, 7 * WINDOW_MS);
    return tl_effort_bits(&effort, 7 * WINDOW_MS);
}

static void it_rises_with_the_joins_up_to_a_bound(void **state)
{
    (void)state;
    assert_int_equal(bits_at(0), TL_EFFORT_BITS_MIN);
    assert_int_equal(bits_at(TL_EFFORT_REST - 1), TL_EFFORT_BITS_MIN);
    assert_int_equal(bits_at(TL_EFFORT_REST), TL_EFFORT_BITS_MIN + 1);
    assert_int_equal(bits_at(2 * TL_EFFORT_REST), TL_EFFORT_BITS_MIN + 2);
    assert_int_equal(bits_at(8 * TL_EFFORT_REST), TL_EFFORT_BITS_MAX);
    assert_int_equal(bits_at(1000 * TL_EFFORT_REST), TL_EFFORT_BITS_MAX);
}

static void it_falls_when_joins_stop(void **state)
{
    (void)state;
    struct tl_effort effort = {0};
    for (unsigned i = 0; i < TL_EFFORT_REST * WINDOW_S; i++)
        tl_effort_count(&effort, WINDOW_MS);
    assert_int_equal(tl_effort_bits(&effort, 2 * WINDOW_MS - 1), TL_EFFORT_BITS_MIN + 1);
    assert_int_equal(tl_effort_bits(&effort, 2 * WINDOW_MS), TL_EFFORT_BITS_MIN + 1);
    assert_int_equal(tl_effort_bits(&effort, 3 * WINDOW_MS), TL_EFFORT_BITS_MIN);
    tl_effort_count(&effort, 2 * WINDOW_MS); /* the window before still counts */
    assert_int_equal(tl_effort_bits(&effort, 2 * WINDOW_MS), TL_EFFORT_BITS_MIN + 1);
    tl_effort_count(&effort, 9 * WINDOW_MS);
    assert_int_equal(tl_effort_bits(&effort, 9 * WINDOW_MS), TL_EFFORT_BITS_MIN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_rises_with_the_joins_up_to_a_bound),
        cmocka_unit_test(it_falls_when_joins_stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
