/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/role/options.h"

enum { WORDS_MAX = 8 };

struct values {
    const char *text;
    bool flag, help;
    uint64_t number;
};

/* Parses a line split at blanks; the words stay valid until the next call. The result is that of
 * tl_options_read; argv holds the reordered words. */
static int parse(const char *line, struct values *values, char *argv[WORDS_MAX + 2],
                 struct tl_error *err)
{
    static char copy[256];
    static char name[] = "program";
    const struct tl_option table[] = {
        {.value = {.path = "text", .type = TL_SETTING_STRING, .help = "a text"},
         .argument = "TEXT",
         .letter = 't',
         .base = &values->text},
        {.value = {.path = "flag", .help = "a flag"}, .base = &values->flag},
        {.value = {.path = "number", .type = TL_SETTING_NUMBER, .min = 1, .max = 256},
         .argument = "N",
         .base = &values->number},
        {.value = {.path = "help"}, .base = &values->help, .last = true, .letter = 'h'},
        {.argument = NULL},
    };
    int argc = 1;
    char *rest = NULL;
    argv[0] = name;
    snprintf(copy, sizeof(copy), "%s", line);
    for (char *word = strtok_r(copy, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest)) {
        assert_true(argc <= WORDS_MAX);
        argv[argc++] = word;
    }
    argv[argc] = NULL;
    *values = (struct values){0};
    *err = (struct tl_error){0};
    return tl_options_read(table, argc, argv, err);
}

static void test_options_and_operands_in_any_order(void **state)
{
    (void)state;
    struct values values;
    struct tl_error err;
    char *argv[WORDS_MAX + 2];
    int first = parse("one --text a --flag two --number=256 -- --three", &values, argv, &err);
    assert_string_equal(values.text, "a");
    assert_true(values.flag);
    assert_int_equal(values.number, 256);
    assert_string_equal(argv[first], "one");
    assert_string_equal(argv[first + 1], "two");
    assert_string_equal(argv[first + 2], "--three");
    assert_null(argv[first + 3]);

    first = parse("--text a -t b", &values, argv, &err);
    assert_string_equal(values.text, "b");
    assert_null(argv[first]);
    first = parse("-", &values, argv, &err); /* an operand, not an option */
    assert_string_equal(argv[first], "-");
    /* An id that was made at random may begin like this. */
    first = parse("one -AbC_d --flag --text -x", &values, argv, &err);
    assert_string_equal(argv[first], "one");
    assert_string_equal(argv[first + 1], "-AbC_d");
    assert_null(argv[first + 2]);
    assert_string_equal(values.text, "-x");
}

static void test_help_ends_the_options(void **state)
{
    (void)state;
    static const char *const lines[] = {"--help --nonsense", "-h --nonsense"};
    for (size_t i = 0; i < 2; i++) {
        struct values values;
        struct tl_error err;
        char *argv[WORDS_MAX + 2];
        assert_true(parse(lines[i], &values, argv, &err) > 0);
        assert_true(values.help);
    }
}

static void test_refusals(void **state)
{
    (void)state;
    static const struct {
        const char *line, *text;
    } cases[] = {
        {"--nonsense", "no such option: \"--nonsense\"; --help lists the options"},
        {"--nonsense=x", "no such option: \"--nonsense=x\"; --help lists the options"},
        {"-x", "no such option: \"-x\"; --help lists the options"},
        {"--fla", "no such option: \"--fla\"; --help lists the options"},
        {"--flag=yes", "--flag takes no value"},
        {"--text", "--text needs a value: TEXT"},
        {"--number 0", "--number: \"0\" is out of bounds (1 to 256)"},
        {"--number 257", "--number: \"257\" is out of bounds (1 to 256)"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct values values;
        struct tl_error err;
        char *argv[WORDS_MAX + 2];
        assert_int_equal(parse(cases[i].line, &values, argv, &err), -1);
        assert_string_equal(err.text, cases[i].text);
        assert_int_equal(err.kind, TL_ERR_INVALID);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_options_and_operands_in_any_order),
        cmocka_unit_test(test_help_ends_the_options),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
