/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ctl/shell/shell.h"

static const struct tl_column columns[] = {{"QUEUE", false}, {"WAITING", true}, {"STATE", false}};

static void assert_table(const struct tl_table *table, const char *expected)
{
    struct tl_text out = {0};
    tl_table_write(table, false, false, &out);
    assert_false(out.failed);
    assert_string_equal(out.data, expected);
    tl_text_free(&out);
}

static void test_widest_cell_sets_the_width(void **state)
{
    (void)state;
    struct tl_table *table = tl_table_new(columns, 3);
    assert_non_null(table);
    tl_table_text(table, "demo");
    tl_table_number(table, 7);
    tl_table_text(table, "open");
    tl_table_text(table, "concert-2026");
    tl_table_number(table, 1234567890);
    tl_table_text(table, "paused");
    assert_table(table, "QUEUE            WAITING  STATE\n"
                        "demo                   7  open\n"
                        "concert-2026  1234567890  paused\n");
    tl_table_free(&table);
    assert_null(table);
}

static void test_without_rows_only_titles(void **state)
{
    (void)state;
    struct tl_table *table = tl_table_new(columns, 3);
    assert_non_null(table);
    assert_table(table, "QUEUE  WAITING  STATE\n");
    tl_table_free(&table);
    tl_table_free(&table); /* NULL is allowed */
}

static void test_many_rows(void **state)
{
    (void)state;
    static const struct tl_column one[] = {{"N", true}};
    struct tl_table *table = tl_table_new(one, 1);
    assert_non_null(table);
    for (uint64_t i = 0; i < 1000; i++)
        tl_table_number(table, i);
    struct tl_text out = {0};
    tl_table_write(table, false, false, &out);
    assert_false(out.failed);
    assert_int_equal(out.length, 1001 * 4); /* three digits and a line end, also for the title */
    tl_text_free(&out);
    tl_table_free(&table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_widest_cell_sets_the_width),
        cmocka_unit_test(test_without_rows_only_titles),
        cmocka_unit_test(test_many_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
