/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "ctl/shell/shell.h"

static enum tl_tint tint(const json_t *object)
{
    return strcmp(tl_json_text(object, "state"), "gone") == 0 ? TL_TINT_TROUBLE : TL_TINT_NONE;
}

static void both(const json_t *object, struct tl_text *cell)
{
    tl_text_append(cell, "%s/%s", tl_json_text(object, "name"), tl_json_text(object, "state"));
}

static const struct tl_member columns[] = {
    TL_MEMBER("QUEUE", "name", TEXT, ""),
    TL_MEMBER("WAITING", "n.waiting", NUMBER, ""),
    {.title = "STATE", .name = "state", .none = "-", .tint = tint},
    {.title = NULL}};

/* The table of this list, as JSON. */
static void assert_table(const char *list, const struct tl_member *members, bool colour, bool dense,
                         const char *expected)
{
    struct tl_text out = {0};
    json_t *parsed = json_loads(list, 0, NULL);
    assert_non_null(parsed);
    tl_list_write(parsed, members, colour, dense, &out);
    assert_string_equal(tl_xtext(&out), expected);
    tl_text_free(&out);
    json_decref(parsed);
}

static void test_widest_cell_sets_the_width(void **state)
{
    (void)state;
    static const char list[] =
        "[{\"name\": \"demo\", \"n\": {\"waiting\": 7}, \"state\": \"open\"}, "
        "{\"name\": \"concert-2026\", \"n\": {\"waiting\": 1234567890}}, "
        "{\"name\": \"x\", \"n\": {\"waiting\": \"-\"}, \"state\": \"gone\"}, {}]";
    assert_table(list, columns, false, false,
                 "QUEUE            WAITING  STATE\n"
                 "demo                   7  open\n"
                 "concert-2026  1234567890  -\n"
                 "x                      -  gone\n"
                 "                       0  -\n");
    assert_table("[{\"name\": \"x\", \"state\": \"gone\"}]", columns, true, true,
                 "\033[1mQUEUE\033[0m \033[1mWAITING\033[0m \033[1mSTATE\033[0m\n"
                 "x           0 \033[31mgone\033[0m\n");
}

static void test_cells_are_cut_and_made(void **state)
{
    (void)state;
    static const struct tl_member members[] = {
        {.title = "NAME", .name = "name", .none = "", .most = 6},
        {.title = "OLDEST", .name = "ms", .kind = TL_MEMBER_WAIT, .none = "", .most = 6},
        {.title = "BOTH", .none = "", .most = 9, .show = both},
        {.title = NULL}};
    assert_table("[{\"name\": \"concert\", \"ms\": 61000, \"state\": \"open\"}, "
                 "{\"name\": \"sale99\", \"ms\": 47000000, \"state\": \"no\"}]",
                 members, false, false,
                 "NAME    OLDEST  BOTH\n"
                 "conce~    61 s  concert/~\n"
                 "sale99  13 h ~  sale99/no\n");
}

static void test_without_rows_only_titles(void **state)
{
    (void)state;
    assert_table("[]", columns, false, false, "QUEUE  WAITING  STATE\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_widest_cell_sets_the_width),
        cmocka_unit_test(test_cells_are_cut_and_made),
        cmocka_unit_test(test_without_rows_only_titles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
