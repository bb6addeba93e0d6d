/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <sodium.h>

#include "worker/feed/joins.h"

enum { MANY = 1000 }; /* the table grows several times */

static struct tl_pending_command commands[MANY];

static int start(void **state)
{
    for (unsigned i = 0; i < MANY; i++) {
        commands[i] = (struct tl_pending_command){.kind = TL_COMMAND_JOIN};
        snprintf(commands[i].visitor, sizeof(commands[i].visitor), "visitor-%u", i);
    }
    *state = tl_joins_new();
    return *state == NULL;
}

static int finish(void **state)
{
    struct tl_joins *joins = *state;
    tl_joins_free(&joins);
    tl_joins_free(&joins); /* nothing */
    return joins != NULL;
}

static void each_visitor_is_found(void **state)
{
    struct tl_joins *joins = *state;
    for (unsigned i = 0; i < MANY; i++) {
        assert_null(tl_joins_find(joins, commands[i].visitor));
        tl_joins_add(joins, &commands[i]);
    }
    for (unsigned i = 0; i < MANY; i++)
        assert_ptr_equal(tl_joins_find(joins, commands[i].visitor), &commands[i]);
}

static void who_is_removed_is_not_found(void **state)
{
    struct tl_joins *joins = *state;
    for (unsigned i = 0; i < MANY; i++)
        tl_joins_add(joins, &commands[i]);
    for (unsigned i = 0; i < MANY; i += 2)
        tl_joins_remove(joins, &commands[i]);
    for (unsigned i = 0; i < MANY; i++)
        assert_ptr_equal(tl_joins_find(joins, commands[i].visitor), i % 2 ? &commands[i] : NULL);
    tl_joins_add(joins, &commands[0]);
    assert_ptr_equal(tl_joins_find(joins, commands[0].visitor), &commands[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_visitor_is_found, start, finish),
        cmocka_unit_test_setup_teardown(who_is_removed_is_not_found, start, finish),
    };
    return sodium_init() < 0 ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
