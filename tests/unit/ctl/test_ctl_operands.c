/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ctl/commands.h"
#include "ctl/help.h"

static void test_operands_of_a_usage_line(void **state)
{
    (void)state;
    static const struct {
        const char *words;
        int i;
        enum tl_operand operand;
    } rows[] = {
        {NULL, 0, TL_OPERAND_NONE},
        {"", 0, TL_OPERAND_NONE},
        {"QUEUE", 0, TL_OPERAND_QUEUE},
        {"QUEUE", 1, TL_OPERAND_NONE},
        {"QUEUE SETTING=VALUE...", 1, TL_OPERAND_ASSIGNMENT},
        {"QUEUE SETTING=VALUE...", 9, TL_OPERAND_ASSIGNMENT},
        {"QUEUE [SETTING=VALUE...]", 3, TL_OPERAND_ASSIGNMENT},
        {"FILE [HASH [ID]]", 0, TL_OPERAND_FILE},
        {"FILE [HASH [ID]]", 1, TL_OPERAND_OTHER},
        {"FILE [HASH [ID]]", 2, TL_OPERAND_OTHER},
        {"FILE [HASH [ID]]", 3, TL_OPERAND_NONE},
        {"QUEUE [FILE]", 1, TL_OPERAND_FILE},
        {"[QUEUE]", 0, TL_OPERAND_QUEUE},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_int_equal(tl_operand_at(rows[i].words, rows[i].i), rows[i].operand);
}

static void test_every_queue_is_known_to_be_one(void **state)
{
    (void)state;
    size_t n;
    const struct tl_ctl_command *commands = tl_ctl_commands(&n);
    for (size_t i = 0; i < n; i++) {
        if (commands[i].words != NULL && strncmp(commands[i].words, "QUEUE", 5) == 0)
            assert_int_equal(tl_operand_at(commands[i].words, 0), TL_OPERAND_QUEUE);
    }
}

static void test_commands_are_found_by_their_names(void **state)
{
    (void)state;
    int used;
    char *two[] = {"queue", "sell-out", "sale"}, *one[] = {"top", "sale"}, *none[] = {"queue"};
    const struct tl_ctl_command *found = tl_ctl_command_find(3, two, &used);
    assert_non_null(found);
    assert_int_equal(used, 2);
    assert_string_equal(found->name, "queue sell-out");
    assert_non_null(tl_ctl_command_find(2, one, &used));
    assert_int_equal(used, 1);
    assert_null(tl_ctl_command_find(1, none, &used));
    assert_null(tl_ctl_command_find(0, none, &used));
    assert_true(tl_ctl_command_begins("queue"));
    assert_false(tl_ctl_command_begins("que"));
    assert_false(tl_ctl_command_begins("top"));
}

static void test_no_two_commands_have_a_name(void **state)
{
    (void)state;
    size_t n;
    const struct tl_ctl_command *commands = tl_ctl_commands(&n);
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < n; k++) {
            assert_true(i == k || strcmp(commands[i].name, commands[k].name) != 0);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_operands_of_a_usage_line),
        cmocka_unit_test(test_every_queue_is_known_to_be_one),
        cmocka_unit_test(test_commands_are_found_by_their_names),
        cmocka_unit_test(test_no_two_commands_have_a_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
