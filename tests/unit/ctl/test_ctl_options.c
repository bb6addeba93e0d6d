/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "ctl/help.h"

static int never_run(const struct tl_ctl_options *options)
{
    (void)options;
    fail_msg("parsing must not run anything");
    return 0;
}

static const struct tl_ctl_command set_command = {.name = "set",
                                                  .words = "QUEUE NAME=VALUE...",
                                                  .summary = "",
                                                  .options = TL_OPTIONS_STORE,
                                                  .run = never_run};
static const struct tl_ctl_command top_command = {.name = "top",
                                                  .summary = "Shows.",
                                                  .details = "More.",
                                                  .options = TL_OPTIONS_STORE | TL_OPTION_INTERVAL |
                                                             TL_OPTION_COUNT | TL_OPTION_OUTPUT,
                                                  .run = never_run};

enum { WORDS_MAX = 8 };

/* Splits a line at blanks and parses it; the words stay valid until the next call. */
static bool parse(const struct tl_ctl_command *command, const char *line,
                  struct tl_ctl_options *options, struct tl_error *err)
{
    static char copy[256];
    static char name[] = "command";
    static char *argv[WORDS_MAX + 2];
    int argc = 1;
    char *rest = NULL;
    argv[0] = name;
    snprintf(copy, sizeof(copy), "%s", line);
    for (char *word = strtok_r(copy, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest)) {
        assert_true(argc <= WORDS_MAX);
        argv[argc++] = word;
    }
    argv[argc] = NULL;
    *err = (struct tl_error){0};
    return tl_ctl_options_parse(command, argc, argv, options, err);
}

static void assert_refused(const struct tl_ctl_command *command, const char *line, const char *part)
{
    struct tl_ctl_options options;
    struct tl_error err;
    assert_false(parse(command, line, &options, &err));
    assert_int_equal(err.kind, TL_ERR_INVALID);
    if (strstr(err.text, part) == NULL)
        fail_msg("\"%s\" does not hold \"%s\"", err.text, part);
}

static void test_defaults(void **state)
{
    (void)state;
    struct tl_ctl_options options;
    struct tl_error err;
    assert_true(parse(&top_command, "", &options, &err));
    assert_null(options.config);
    assert_null(options.redis);
    assert_null(options.queue);
    assert_string_equal(options.data, "data");
    assert_int_equal(options.interval_ms, 1000);
    assert_int_equal(options.count, 0);
    assert_int_equal(options.output, TL_OUTPUT_TABLE);
    assert_int_equal(options.n_words, 0);
}

static void test_options_and_words_in_any_order(void **state)
{
    (void)state;
    struct tl_ctl_options options;
    struct tl_error err;
    assert_true(parse(&set_command, "demo --config a.yaml capacity=20 --redis=unix:///r -- --x=1",
                      &options, &err));
    assert_string_equal(options.config, "a.yaml");
    assert_string_equal(options.redis, "unix:///r");
    assert_int_equal(options.n_words, 3);
    assert_string_equal(options.words[0], "demo");
    assert_string_equal(options.words[1], "capacity=20");
    assert_string_equal(options.words[2], "--x=1");
}

/* The file that a package installed; any file that exists will do. */
static const char *installed(const struct tl_ctl_command *command, struct tl_ctl_options options)
{
    struct tl_error err = {0};
    assert_true(tl_installed_find(command, "/dev/null", &options, &err));
    return options.config;
}

static void test_the_installed_file_counts_where_nothing_else_is_said(void **state)
{
    (void)state;
    static const struct tl_ctl_command up = {.name = "up",
                                             .options = TL_OPTION_CONFIG | TL_OPTION_PROCESSES};
    struct tl_ctl_options options = {0};
    struct tl_error err = {0};
    assert_int_equal(unsetenv("TELLERLINE_REDIS_URL"), 0);
    assert_string_equal(installed(&set_command, options), "/dev/null");
    assert_null(installed(&up, options));
    assert_string_equal(installed(&set_command, (struct tl_ctl_options){.config = "a"}), "a");
    assert_null(installed(&set_command, (struct tl_ctl_options){.redis = "unix:///r"}));
    assert_null(installed(&set_command, (struct tl_ctl_options){.server = "http://h"}));
    assert_null(installed(&set_command, (struct tl_ctl_options){.data = "data"}));
    assert_int_equal(setenv("TELLERLINE_REDIS_URL", "unix:///r", 1), 0);
    assert_null(installed(&set_command, options));
    assert_int_equal(unsetenv("TELLERLINE_REDIS_URL"), 0);
    assert_true(tl_installed_find(&set_command, "/nowhere/a.yaml", &options, &err));
    assert_null(options.config);
}

/* In the syntax of systemd, as far as settings need it. */
static void test_the_installed_environment_counts_where_nothing_is_set(void **state)
{
    (void)state;
    char path[] = "/tmp/test_ctl_options.XXXXXX";
    struct tl_error err = {0};
    FILE *file = fdopen(mkstemp(path), "w");
    assert_non_null(file);
    fputs(
        "# TELLERLINE_A=no\n\n  TELLERLINE_B=\"redis://u:p@h/0\" \nTELLERLINE_C='x y'\nPATH_OF=z\n"
        "TELLERLINE_D=file\n",
        file);
    fclose(file);
    assert_int_equal(setenv("TELLERLINE_D", "mine", 1), 0);
    assert_int_equal(setenv("TELLERLINE_E_FILE", "/mine", 1), 0);
    assert_true(tl_installed_environment(path, &err));
    assert_null(getenv("TELLERLINE_A"));
    assert_string_equal(getenv("TELLERLINE_B"), "redis://u:p@h/0");
    assert_string_equal(getenv("TELLERLINE_C"), "x y");
    assert_string_equal(getenv("TELLERLINE_D"), "mine");
    assert_null(getenv("PATH_OF"));
    assert_null(getenv("TELLERLINE_E"));
    assert_int_equal(unsetenv("TELLERLINE_E_FILE"), 0);
    unlink(path);
    assert_true(tl_installed_environment(path, &err)); /* there is none */
    assert_false(tl_installed_environment("/dev/null/none", &err));
    for (char name[] = "TELLERLINE_B"; name[11] <= 'D'; name[11]++)
        assert_int_equal(unsetenv(name), 0);
}

static void test_values(void **state)
{
    (void)state;
    struct tl_ctl_options options;
    struct tl_error err;
    assert_true(parse(&top_command, "--interval 250ms --count=3 -o json", &options, &err));
    assert_int_equal(options.interval_ms, 250);
    assert_int_equal(options.count, 3);
    assert_int_equal(options.output, TL_OUTPUT_JSON);
}

static void test_refusals(void **state)
{
    (void)state;
    assert_refused(&top_command, "--colour", "--colour");
    assert_refused(&top_command, "--queue x", "--queue"); /* not an option of this command */
    assert_refused(&top_command, "--config", "needs a value");
    assert_refused(&top_command, "--help=1", "takes no value");
    assert_refused(&top_command, "--interval 10ms", "out of bounds (100ms to 1d)");
    assert_refused(&top_command, "--interval soon", "--interval");
    assert_refused(&top_command, "--count 0", "--count");
    assert_refused(&top_command, "--count -1", "--count");
    assert_refused(&top_command, "word", "usage: tellerline top");
    assert_refused(&set_command, "demo", "usage: tellerline set [options] QUEUE NAME=VALUE...");
}

static void test_help_needs_no_words(void **state)
{
    (void)state;
    struct tl_ctl_options options;
    struct tl_error err;
    assert_true(parse(&set_command, "--help", &options, &err));
    assert_true(options.help);
    assert_true(parse(&set_command, "-h", &options, &err));
    assert_true(options.help);
}

static void test_help_lists_the_command_s_own_options(void **state)
{
    (void)state;
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    assert_non_null(out);
    tl_ctl_help_command(&top_command, out);
    fclose(out);
    assert_non_null(strstr(text, "Usage: tellerline top [options]\n"));
    assert_non_null(strstr(text, "--interval TIME"));
    assert_null(strstr(text, "--queue"));
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_options_and_words_in_any_order),
        cmocka_unit_test(test_the_installed_file_counts_where_nothing_else_is_said),
        cmocka_unit_test(test_the_installed_environment_counts_where_nothing_is_set),
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_help_needs_no_words),
        cmocka_unit_test(test_help_lists_the_command_s_own_options),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
