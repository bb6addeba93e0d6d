/* SPDX-License-Identifier: Apache-2.0 */
/* The heap of what is due, against sorting. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lab/crowd.h"
#include "tests/unit/random.h"

static void test_earliest_first(void **state)
{
    (void)state;
    enum { ROUNDS = 50, MOST = 3000 };
    uint64_t random = random_seed("test_rehearse_dues");
    for (int round = 0; round < ROUNDS; round++) {
        struct tl_dues dues = {0};
        uint64_t n = random_below(&random, MOST);
        uint64_t sum = 0;
        for (uint64_t i = 0; i < n; i++) {
            int64_t at_ms = (int64_t)random_below(&random, 1000);
            tl_dues_push(&dues, (struct tl_due){.at_ms = at_ms, .visitor = i});
            sum += i;
            /* Now and then one is taken meanwhile: the earliest of all. */
            if (random_below(&random, 4) == 0) {
                struct tl_due due = tl_dues_pop(&dues);
                for (size_t k = 0; k < dues.n; k++)
                    assert_true(dues.list[k].at_ms >= due.at_ms);
                sum -= due.visitor;
            }
        }
        int64_t last_ms = 0;
        while (dues.n > 0) {
            struct tl_due due = tl_dues_pop(&dues);
            assert_true(due.at_ms >= last_ms);
            last_ms = due.at_ms;
            sum -= due.visitor;
        }
        assert_int_equal(sum, 0); /* each one once */
        free(dues.list);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_earliest_first)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
