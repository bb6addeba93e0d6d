/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "expirer/arrivals.h"

static int64_t found(const struct tl_arrivals *arrivals, uint64_t seq, bool known)
{
    int64_t ms = -1;
    assert_int_equal(tl_arrivals_find(arrivals, seq, 5000, &ms), known);
    return ms;
}

static void test_times_of_seqs(void **state)
{
    static struct tl_arrivals arrivals;
    (void)state;
    assert_int_equal(found(&arrivals, 7, false), 5000);
    tl_arrivals_note(&arrivals, 10, 1000);
    tl_arrivals_note(&arrivals, 20, 1050); /* too soon for another mark */
    tl_arrivals_note(&arrivals, 30, 1200);
    tl_arrivals_note(&arrivals, 25, 9999); /* older than the last: a visitor who came back */
    assert_int_equal(found(&arrivals, 9, false), 1000);
    assert_int_equal(found(&arrivals, 10, true), 1000);
    assert_int_equal(found(&arrivals, 29, true), 1000);
    assert_int_equal(found(&arrivals, 30, true), 1200);
    assert_int_equal(found(&arrivals, 1000000, true), 1200);
    assert_int_equal(tl_arrivals_after(&arrivals, 999), 0);
    assert_int_equal(tl_arrivals_after(&arrivals, 1000), 30);
    assert_int_equal(tl_arrivals_after(&arrivals, 1199), 30);
    assert_true(tl_arrivals_after(&arrivals, 1200) > 1000000); /* all */
    tl_arrivals_forget(&arrivals, 10);
    assert_int_equal(found(&arrivals, 10, true), 1000);
    tl_arrivals_forget(&arrivals, 31);
    assert_int_equal(found(&arrivals, 29, false), 1200);
    assert_int_equal(found(&arrivals, 30, true), 1200);
}

/* However many join, the memory stays and the error is small beside the time. */
static void test_many(void **state)
{
    static struct tl_arrivals arrivals;
    (void)state;
    for (int64_t i = 1; i <= 1000000; i++)
        tl_arrivals_note(&arrivals, (uint64_t)i, i * 20);
    assert_true(arrivals.n <= TL_ARRIVALS_MARKS);
    for (int64_t i = 1; i <= 1000000; i += 997) {
        int64_t ms = found(&arrivals, (uint64_t)i, true);
        assert_true(ms <= i * 20 && ms > i * 20 - arrivals.step_ms - 20);
    }
    assert_true(arrivals.step_ms <= 20000000 / 256);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_times_of_seqs),
                                       cmocka_unit_test(test_many)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
