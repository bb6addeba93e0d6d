/* SPDX-License-Identifier: Apache-2.0 */
/* How many ingest entries the dispatcher reads at a time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "dispatcher/apply.h"

static uint64_t size_after(uint64_t entries, uint64_t commands)
{
    const struct tl_apply_counts counts = {.applied = entries, .commands = commands};
    return tl_apply_read_size(&counts);
}

static void small_entries_make_large_reads(void **state)
{
    (void)state;
    assert_int_equal(size_after(100, 100), TL_READ_ENTRIES_MAX);
    assert_int_equal(size_after(100, 20000), 100);
}

static void large_entries_make_small_reads(void **state)
{
    (void)state;
    assert_int_equal(size_after(10, 10000), TL_READ_ENTRIES_MIN);
}

static void reads_without_commands_have_a_size_too(void **state)
{
    (void)state;
    assert_int_equal(size_after(0, 0), TL_READ_ENTRIES_MIN);
    assert_int_equal(size_after(3, 0), TL_READ_ENTRIES_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_entries_make_large_reads),
        cmocka_unit_test(large_entries_make_small_reads),
        cmocka_unit_test(reads_without_commands_have_a_size_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
