/* SPDX-License-Identifier: Apache-2.0 */
/* Names of queues and ids of visitors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "common/wire/names.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void queue_names_are_checked(void **state)
{
    (void)state;
    static const char *const good[] = {"a", "0", "concert-2026", "a.b_c-d", "a--"};
    static const char *const bad[] = {"",   "-a",  ".a",   "_a",  "A",
                                      "aB", "a b", "a{b}", "a/b", "\xc3\xa4"};
    char name[TL_QUEUE_NAME_MAX + 2];
    for (size_t i = 0; i < COUNT(good); i++)
        assert_true(tl_queue_name_valid(good[i], strlen(good[i])));
    for (size_t i = 0; i < COUNT(bad); i++)
        assert_false(tl_queue_name_valid(bad[i], strlen(bad[i])));
    assert_false(tl_queue_name_valid("a\0b", 3));
    memset(name, 'a', sizeof(name));
    assert_true(tl_queue_name_valid(name, 63));
    assert_false(tl_queue_name_valid(name, 64));
}

static void visitors_are_checked(void **state)
{
    (void)state;
    char visitor[TL_VISITOR_MAX + 1];
    memset(visitor, 'v', sizeof(visitor));
    assert_true(tl_visitor_valid("!", 1));
    assert_true(tl_visitor_valid("~user:1{}", 9));
    assert_true(tl_visitor_valid(visitor, 64));
    assert_false(tl_visitor_valid(visitor, 65));
    assert_false(tl_visitor_valid("", 0));
    assert_false(tl_visitor_valid("a b", 3));
    assert_false(tl_visitor_valid("a\n", 2));
    assert_false(tl_visitor_valid("a\0", 2));
    assert_false(tl_visitor_valid("\x7f", 1));
    assert_false(tl_visitor_valid("\xc3\xa4", 2));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(queue_names_are_checked),
        cmocka_unit_test(visitors_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
