/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/clock.h"
#include "tests/unit/random.h"

/* Full jitter is drawn evenly from [base/2, current]; the ends are reached with the right random
 * numbers. */
static void test_ends(void **state)
{
    (void)state;
    struct tl_backoff backoff;
    tl_backoff_init(&backoff, 100, 1000);
    assert_int_equal(tl_backoff_next(&backoff, 0), 50);
    tl_backoff_reset(&backoff);
    assert_int_equal(tl_backoff_next(&backoff, 50), 100);
    tl_backoff_reset(&backoff);
    assert_int_equal(tl_backoff_next(&backoff, 51), 50);
}

/* The upper end doubles with every failure, up to the limit and no further. */
static void test_doubles_to_the_limit(void **state)
{
    (void)state;
    static const int64_t upper[] = {100, 200, 400, 800, 1000, 1000, 1000};
    struct tl_backoff backoff;
    tl_backoff_init(&backoff, 100, 1000);
    for (size_t i = 0; i < sizeof(upper) / sizeof(upper[0]); i++)
        assert_int_equal(tl_backoff_next(&backoff, (uint32_t)(upper[i] - 50)), upper[i]);
}

static void test_reset(void **state)
{
    (void)state;
    struct tl_backoff backoff;
    tl_backoff_init(&backoff, 100, 1000);
    for (int i = 0; i < 10; i++)
        tl_backoff_next(&backoff, 0);
    assert_int_equal(tl_backoff_next(&backoff, 950), 1000);
    tl_backoff_reset(&backoff);
    assert_int_equal(tl_backoff_next(&backoff, 50), 100);
    assert_int_equal(tl_backoff_next(&backoff, 150), 200);
}

/* Whatever the random number and however many failures: within bounds, and spread over them. */
static void test_bounds(void **state)
{
    (void)state;
    uint64_t random = random_seed("backoff");
    for (int round = 0; round < 200; round++) {
        struct tl_backoff backoff;
        int64_t base = 1 + (int64_t)random_below(&random, 1000);
        int64_t limit = base + (int64_t)random_below(&random, 60000);
        tl_backoff_init(&backoff, base, limit);
        int64_t current = base;
        for (int i = 0; i < 100; i++) {
            int64_t wait = tl_backoff_next(&backoff, (uint32_t)random_next(&random));
            assert_in_range(wait, base / 2, current);
            current = current * 2 < limit ? current * 2 : limit;
        }
    }
}

static void test_jitter_spreads(void **state)
{
    (void)state;
    uint64_t random = random_seed("jitter");
    struct tl_backoff backoff;
    tl_backoff_init(&backoff, 100, 1000);
    for (int i = 0; i < 5; i++)
        tl_backoff_next(&backoff, 0);
    int64_t sum = 0;
    for (int i = 0; i < 10000; i++)
        sum += tl_backoff_next(&backoff, (uint32_t)random_next(&random));
    /* The mean of [50, 1000] is 525; its standard error here is under 3. */
    assert_in_range(sum / 10000, 500, 550);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ends),           cmocka_unit_test(test_doubles_to_the_limit),
        cmocka_unit_test(test_reset),          cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_jitter_spreads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
