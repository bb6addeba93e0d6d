/* SPDX-License-Identifier: Apache-2.0 */
/* Rebuilds after a new incarnation: spread over a time that the size of the line decides. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "worker/feed/followed_queues.h"

enum { NOW = 1000000, WORKERS = 1000 };

static void a_small_line_is_rebuilt_at_once(void **state)
{
    (void)state;
    const uint64_t sizes[] = {0, 1, 10000, TL_STAGGER_SIZE - 1};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        assert_int_equal(tl_stagger_until(NOW, sizes[i], UINT32_MAX), NOW);
}

static void a_line_is_rebuilt_within_its_bound(void **state)
{
    (void)state;
    assert_int_equal(tl_stagger_until(NOW, 1000000, 0), NOW);
    assert_int_equal(tl_stagger_until(NOW, 1000000, UINT32_MAX), NOW + TL_STAGGER_MS - 1);
    assert_int_equal(tl_stagger_until(NOW, TL_STAGGER_SIZE, UINT32_MAX), NOW + 99);
    assert_int_equal(tl_stagger_until(NOW, 200000, UINT32_MAX / 2), NOW + 499);
    assert_int_equal(tl_stagger_until(NOW, UINT64_MAX, UINT32_MAX), NOW + TL_STAGGER_MS - 1);
}

/* Many workers of a large line: no tenth of the time gets many more than a tenth of them. */
static void workers_are_spread_evenly(void **state)
{
    (void)state;
    unsigned tenths[10] = {0};
    for (uint32_t i = 0; i < WORKERS; i++) {
        uint32_t random = i * 2654435761U; /* multiplicative hashing: Knuth, vol. 3, 6.4 */
        tenths[(tl_stagger_until(NOW, 1000000, random) - NOW) * 10 / TL_STAGGER_MS]++;
    }
    for (int i = 0; i < 10; i++)
        assert_in_range(tenths[i], WORKERS / 10 - 10, WORKERS / 10 + 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_small_line_is_rebuilt_at_once),
        cmocka_unit_test(a_line_is_rebuilt_within_its_bound),
        cmocka_unit_test(workers_are_spread_evenly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
