#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "worker/feed/pending_table.h"

#define MANY 5000 /* grows the table several times */

static void what_was_added_is_found_until_it_is_removed(void **state)
{
    (void)state;
    static struct tl_pending_command commands[MANY];
    struct tl_pending_table *table = tl_pending_table_new();
    assert_non_null(table);
    for (int i = 0; i < MANY; i++) {
        snprintf(commands[i].visitor, sizeof(commands[i].visitor), "v%d", i);
        assert_null(tl_pending_table_find(table, commands[i].visitor));
        tl_pending_table_add(table, &commands[i]);
    }
    for (int i = 0; i < MANY; i++)
        assert_ptr_equal(tl_pending_table_find(table, commands[i].visitor), &commands[i]);
    for (int i = 0; i < MANY; i += 2)
        tl_pending_table_remove(table, &commands[i]);
    for (int i = 0; i < MANY; i++) {
        const struct tl_pending_command *expected = i % 2 == 0 ? NULL : &commands[i];
        assert_ptr_equal(tl_pending_table_find(table, commands[i].visitor), expected);
    }
    tl_pending_table_free(&table);
    assert_null(table);
}

static void removing_what_is_not_there_changes_nothing(void **state)
{
    (void)state;
    struct tl_pending_command there = {.visitor = "there"};
    struct tl_pending_command other = {.visitor = "there"};
    struct tl_pending_table *table = tl_pending_table_new();
    assert_non_null(table);
    tl_pending_table_add(table, &there);
    tl_pending_table_remove(table, &other);
    assert_ptr_equal(tl_pending_table_find(table, "there"), &there);
    tl_pending_table_free(&table);
    tl_pending_table_free(&table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_added_is_found_until_it_is_removed),
        cmocka_unit_test(removing_what_is_not_there_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
