/* SPDX-License-Identifier: Apache-2.0 */
/* How joins share a worker under pressure. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "worker/queue/queue.h"

static const struct tl_press idle = {.pending_max = 100000, .lag_max_ms = 30000};

static void without_pressure_there_is_no_share(void **state)
{
    (void)state;
    struct tl_press press = idle;
    assert_int_equal(tl_press_share(&press), 0);
    press = (struct tl_press){.pending = 20000,
                              .pending_max = 100000,
                              .lag_ms = 500,
                              .lag_max_ms = 30000,
                              .memory_percent = 87};
    assert_int_equal(tl_press_share(&press), 0);
}

/* Each of the three presses alone, the more the smaller the share, and never to nothing. */
static void the_share_falls_with_the_room(void **state)
{
    (void)state;
    struct tl_press pending = idle, lag = idle, memory = idle;
    uint64_t before[3] = {50, 50, 50};
    for (unsigned step = 0; step <= 20; step++) {
        pending.pending = 25000 + 5000 * step;
        lag.lag_ms = 750 + 500 * (int64_t)step;
        memory.memory_percent = 88 + step;
        const uint64_t shares[3] = {tl_press_share(&pending), tl_press_share(&lag),
                                    tl_press_share(&memory)};
        for (size_t i = 0; i < 3; i++) {
            assert_in_range(shares[i], 5, before[i]);
            before[i] = shares[i];
        }
    }
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(before[i], 5);
}

static void the_worst_counts(void **state)
{
    (void)state;
    struct tl_press press = idle;
    press.pending = 26000;
    press.lag_ms = 60000;
    assert_int_equal(tl_press_share(&press), 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_pressure_there_is_no_share),
        cmocka_unit_test(the_share_falls_with_the_room),
        cmocka_unit_test(the_worst_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
