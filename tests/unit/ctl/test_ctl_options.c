/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
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
    assert_int_equal(setenv("TELLERLINE_REDIS_URL_FILE", "/mine", 1), 0);
    assert_null(installed(&set_command, options));
    assert_int_equal(unsetenv("TELLERLINE_REDIS_URL_FILE"), 0);
    assert_true(tl_installed_find(&set_command, "/nowhere/a.yaml", &options, &err));
    assert_null(options.config);
}

/* Writes a file, whose path is the caller's. */
static void write_file(char *path, const char *text)
{
    FILE *file = fdopen(mkstemp(path), "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

/* Root reads everything, so a child that is not root looks. Its exit status: a bit for each. */
static int seen_by_another(const char *path)
{
    pid_t child = fork();
    if (child == 0) {
        struct tl_ctl_options options = {0};
        struct tl_error config = {0}, environment = {0};
        bool other = getuid() != 0 || setuid(65534) == 0;
        bool found = tl_installed_find(&set_command, path, &options, &config);
        bool read = tl_installed_environment(path, &environment);
        _exit((other ? 1 : 0) | (!found && strstr(config.text, "use sudo") != NULL ? 2 : 0) |
              (!read && strstr(environment.text, path) != NULL ? 4 : 0));
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void test_installed_files_that_others_may_read_are_said(void **state)
{
    (void)state;
    char path[] = "/tmp/test_ctl_options.XXXXXX";
    write_file(path, "TELLERLINE_B=b\n");
    assert_int_equal(chmod(path, 0), 0);
    assert_int_equal(seen_by_another(path), 1 | 2 | 4);
    assert_int_equal(unlink(path), 0);
}

/* In the syntax of systemd, as far as settings need it. */
static void test_the_installed_environment_counts_where_nothing_is_set(void **state)
{
    (void)state;
    char path[] = "/tmp/test_ctl_options.XXXXXX";
    struct tl_error err = {0};
    write_file(path, "# TELLERLINE_A=no\n\n  TELLERLINE_B=\"redis://u:p@h/0\" \n"
                     "TELLERLINE_C='x y'\nPATH_OF=z\nTELLERLINE_D=file\nTELLERLINE_E=file\n");
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

static void assert_last(const char *text, const char *value)
{
    char path[] = "/tmp/test_ctl_options.XXXXXX";
    struct tl_error err = {0};
    write_file(path, text);
    assert_true(tl_installed_environment(path, &err));
    assert_string_equal(getenv("TELLERLINE_B"), value);
    assert_int_equal(unsetenv("TELLERLINE_B"), 0);
    assert_int_equal(unlink(path), 0);
}

static void test_the_installed_environment_is_read_as_systemd_reads_it(void **state)
{
    (void)state;
    assert_last("TELLERLINE_B=first\nTELLERLINE_C=c\nTELLERLINE_B=last", "last");
    /* Both are set: the programs refuse that, as they do in a service. */
    assert_last("TELLERLINE_B_FILE=/b\nTELLERLINE_B=b\n", "b");
    assert_string_equal(getenv("TELLERLINE_B_FILE"), "/b");
    assert_int_equal(unsetenv("TELLERLINE_B_FILE"), 0);
    assert_int_equal(unsetenv("TELLERLINE_C"), 0);
    assert_last("TELLERLINE_B=first\nTELLERLINE_B=\n", "");
    assert_last("TELLERLINE_B=\"a\\\"b\\\\c\\$d\\`e\\nf\" \n", "a\"b\\c$d`e\\nf");
    assert_last("TELLERLINE_B='a\\\\b\"c'\n", "a\\\\b\"c");
    assert_last("TELLERLINE_B= a\\b\\\\c\"d \n", "ab\\c\"d");
    assert_last("TELLERLINE_B=\"a\n", "a");
    assert_last("TELLERLINE_B=a\\", "a\\");
}

/* Another user completes options, too: what the system is matters for queues only. */
static void test_what_was_typed_says_not_what_the_system_is(void **state)
{
    (void)state;
    static char name[] = "set", queue[] = "demo";
    char *argv[] = {name, queue, NULL};
    struct tl_ctl_options options;
    struct tl_error err = {0};
    assert_true(tl_ctl_options_read(&set_command, 2, argv, &options, &err));
    assert_null(options.config);
    assert_null(options.data);
    assert_true(tl_ctl_options_locate(&options, &err));
    assert_string_equal(options.data, "data");
}

/* `key create api NAME FILE`: data is left open, so it was not looked for. */
static void test_with_all_its_words_a_command_may_need_no_system(void **state)
{
    (void)state;
    static const struct tl_ctl_command key_command = {.name = "key create",
                                                      .words = "KIND NAME [FILE]",
                                                      .options = TL_OPTION_CONFIG,
                                                      .words_apart = 3,
                                                      .run = never_run};
    struct tl_ctl_options options;
    struct tl_error err;
    assert_true(parse(&key_command, "api shop file", &options, &err));
    assert_null(options.data);
    assert_true(parse(&key_command, "api shop", &options, &err));
    assert_string_equal(options.data, "data");
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
        cmocka_unit_test(test_installed_files_that_others_may_read_are_said),
        cmocka_unit_test(test_the_installed_environment_is_read_as_systemd_reads_it),
        cmocka_unit_test(test_what_was_typed_says_not_what_the_system_is),
        cmocka_unit_test(test_with_all_its_words_a_command_may_need_no_system),
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_help_needs_no_words),
        cmocka_unit_test(test_help_lists_the_command_s_own_options),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
