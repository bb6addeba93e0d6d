/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ctl/up/up.h"

struct printed {
    struct tl_lines_output output;
    struct tl_lines lines;
    char *text;
    size_t length;
};

static int setup(void **state)
{
    struct printed *printed = calloc(1, sizeof(*printed));
    assert_non_null(printed);
    printed->output.file = open_memstream(&printed->text, &printed->length);
    assert_non_null(printed->output.file);
    printed->lines.role = "worker";
    *state = printed;
    return 0;
}

static int teardown(void **state)
{
    struct printed *printed = *state;
    fclose(printed->output.file);
    free(printed->text);
    free(printed);
    return 0;
}

static void feed(struct printed *printed, const char *bytes)
{
    tl_lines_feed(&printed->lines, &printed->output, bytes, strlen(bytes));
}

static void test_whole_lines(void **state)
{
    struct printed *printed = *state;
    feed(printed, "one\ntwo\n\n");
    assert_string_equal(printed->text, "worker     | one\nworker     | two\nworker     | \n");
}

static void test_a_line_in_pieces(void **state)
{
    struct printed *printed = *state;
    feed(printed, "st");
    feed(printed, "art");
    fflush(printed->output.file);
    assert_int_equal(printed->length, 0);
    feed(printed, "ed\nnext");
    assert_string_equal(printed->text, "worker     | started\n");
    tl_lines_end(&printed->lines, &printed->output);
    assert_string_equal(printed->text, "worker     | started\nworker     | next\n");
    tl_lines_end(&printed->lines, &printed->output);
    assert_string_equal(printed->text, "worker     | started\nworker     | next\n");
}

static void test_an_endless_line_is_broken(void **state)
{
    struct printed *printed = *state;
    static char bytes[TL_LINE_BYTES_MAX + 10];
    memset(bytes, 'x', sizeof(bytes) - 1);
    feed(printed, bytes);
    feed(printed, "\n");
    const size_t prefix = strlen("worker     | ");
    assert_int_equal(printed->length, 2 * (prefix + 1) + sizeof(bytes) - 1);
    assert_int_equal(strcspn(printed->text, "\n"), prefix + TL_LINE_BYTES_MAX);
}

static void test_control_characters_are_harmless(void **state)
{
    struct printed *printed = *state;
    const char bytes[] = "a\033[2Jb\tc\0d\177\n";
    tl_lines_feed(&printed->lines, &printed->output, bytes, sizeof(bytes) - 1);
    assert_string_equal(printed->text, "worker     | a?[2Jb\tc?d?\n");
}

static void test_colour(void **state)
{
    struct printed *printed = *state;
    printed->output.colour = true;
    feed(printed, "hello\n");
    assert_string_equal(printed->text, "\033[36mworker     |\033[0m hello\n");
}

static void test_no_colour_in_a_file(void **state)
{
    (void)state;
    FILE *file = tmpfile();
    assert_non_null(file);
    setenv("TERM", "xterm", 1);
    assert_false(tl_terminal_colour(file));
    fclose(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_whole_lines, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_line_in_pieces, setup, teardown),
        cmocka_unit_test_setup_teardown(test_an_endless_line_is_broken, setup, teardown),
        cmocka_unit_test_setup_teardown(test_control_characters_are_harmless, setup, teardown),
        cmocka_unit_test_setup_teardown(test_colour, setup, teardown),
        cmocka_unit_test(test_no_colour_in_a_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
