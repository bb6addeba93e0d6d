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

#include "common/config/config.h"
#include "common/role/admin.h"
#include "common/role/program.h"
#include "tests/unit/listening.h"

/* The result of one command line. */
struct outcome {
    bool goes_on;
    const char *config_path;
    int status;
    char *out, *errors;
    char record[200]; /* what the callbacks were called with */
};

static bool apply_processes(void *context, const char *value, struct tl_error *err)
{
    struct outcome *outcome = context;
    size_t used = strlen(outcome->record);
    if (strcmp(value, "0") == 0)
        return tl_error_set(err, TL_ERR_INVALID, "\"257\" is out of bounds (0 to 256)");
    snprintf(outcome->record + used, sizeof(outcome->record) - used, "processes=%s ", value);
    return true;
}

static bool apply_quiet(void *context, const char *value, struct tl_error *err)
{
    struct outcome *outcome = context;
    size_t used = strlen(outcome->record);
    (void)err;
    assert_null(value);
    snprintf(outcome->record + used, sizeof(outcome->record) - used, "quiet ");
    return true;
}

/* Parses the words, which follow the program's name and end with NULL. */
static void run(struct outcome *outcome, char **words)
{
    const struct tl_option own_options[] = {
        {.value = {.path = "processes", .help = "how many"},
         .argument = "N",
         .apply = apply_processes,
         .base = outcome},
        {.value = {.path = "quiet", .help = "say less"}, .apply = apply_quiet, .base = outcome},
        {.argument = NULL},
    };
    char *argv[16] = {(char[]){"argv0"}};
    int argc = 1;
    size_t length;
    for (; words[argc - 1] != NULL; argc++)
        argv[argc] = words[argc - 1];
    memset(outcome, 0, sizeof(*outcome));
    FILE *out = open_memstream(&outcome->out, &length);
    FILE *errors = open_memstream(&outcome->errors, &length);
    assert_non_null(out);
    assert_non_null(errors);
    const struct tl_program program = {.name = "tellerline-test",
                                       .summary = "Tests the command line.",
                                       .options = own_options,
                                       .listeners = {offsetof(struct tl_config, admin.worker),
                                                     offsetof(struct tl_config, http.listen)},
                                       .out = out,
                                       .errors = errors};
    outcome->goes_on =
        tl_program_parse(&program, argc, argv, &outcome->config_path, &outcome->status);
    assert_int_equal(fclose(out), 0);
    assert_int_equal(fclose(errors), 0);
}

#define RUN(outcome, ...) run(outcome, (char *[]){__VA_ARGS__, NULL})

static void check(struct outcome *outcome, bool goes_on, int status, const char *out,
                  const char *errors)
{
    assert_string_equal(outcome->errors, errors);
    assert_string_equal(outcome->out, out);
    assert_int_equal(outcome->goes_on, goes_on);
    assert_int_equal(outcome->status, status);
    free(outcome->out);
    free(outcome->errors);
}

static void options_are_read(void **state)
{
    (void)state;
    struct outcome outcome;
    run(&outcome, (char *[]){NULL});
    check(&outcome, true, 0, "", "");
    assert_null(outcome.config_path);

    RUN(&outcome, "--config", "a.yaml", "--processes=3", "--quiet", "--processes", "4");
    check(&outcome, true, 0, "", "");
    assert_string_equal(outcome.config_path, "a.yaml");
    assert_string_equal(outcome.record, "processes=3 quiet processes=4 ");
}

static void the_version_is_told(void **state)
{
    (void)state;
    struct outcome outcome;
    RUN(&outcome, "--version", "--nonsense");
    check(&outcome, false, 0, "tellerline-test " TELLERLINE_VERSION "\n", "");
}

static void help_lists_all_options(void **state)
{
    (void)state;
    struct outcome outcome;
    RUN(&outcome, "--help");
    check(&outcome, false, 0,
          "Usage: tellerline-test [OPTION...]\n"
          "Tests the command line.\n"
          "\n"
          "  --config FILE        the configuration (YAML); without it defaults and environment\n"
          "  --check              only check the configuration; exit status 1 if it is wrong\n"
          "  --healthcheck        ask the running program whether it is alive; exit status 1 if "
          "not\n"
          "  --processes N        how many\n"
          "  --quiet              say less\n"
          "  --version            print the version\n"
          "  -h, --help           print this\n"
          "\n"
          "TELLERLINE_* variables override the configuration: TELLERLINE_REDIS_URL, "
          "TELLERLINE_HTTP_LISTEN, ...\n"
          "TELLERLINE_CONFIG names the file when --config does not.\n",
          "");
}

static void a_wrong_command_line_exits_with_2(void **state)
{
    (void)state;
    static const struct {
        char *words[3];
        const char *errors;
    } cases[] = {
        {{"--conf-file", "x"}, "no such option: \"--conf-file\"; --help lists the options\n"},
        {{"--check=yes"}, "--check takes no value\n"},
        {{"-x"}, "no such option: \"-x\"; --help lists the options\n"},
        {{"--quiet", "-xyz"}, "unexpected argument \"-xyz\"; --help lists the options\n"},
        {{"--config"}, "--config needs a value: FILE\n"},
        {{"--processes"}, "--processes needs a value: N\n"},
        {{"audit"}, "unexpected argument \"audit\"; --help lists the options\n"},
        {{"--check", "audit"}, "unexpected argument \"audit\"; --help lists the options\n"},
        {{"--processes", "0"}, "--processes: \"257\" is out of bounds (0 to 256)\n"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct outcome outcome;
        char expected[200];
        snprintf(expected, sizeof(expected), "tellerline-test: %s", cases[i].errors);
        run(&outcome, (char *[]){cases[i].words[0], cases[i].words[1], NULL});
        check(&outcome, false, 2, "", expected);
    }
}

static void check_only_validates(void **state)
{
    (void)state;
    struct outcome outcome;
    RUN(&outcome, "--check", "--config", "conf/tellerline.yaml");
    check(&outcome, false, 0, "conf/tellerline.yaml: ok\n", "");
    RUN(&outcome, "--check");
    check(&outcome, false, 0, "environment: ok\n", "");
    RUN(&outcome, "--config", "/nonexistent.yaml", "--check");
    check(&outcome, false, 1, "",
          "cannot open the configuration /nonexistent.yaml: No such file or directory\n");

    char path[] = "/tmp/tellerline-test-XXXXXX";
    char expected[200];
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_true(dprintf(fd, "worker:\n  processes: 257\n") > 0);
    assert_int_equal(close(fd), 0);
    RUN(&outcome, "--check", "--config", path);
    assert_int_equal(unlink(path), 0);
    snprintf(expected, sizeof(expected),
             "%s:2:14: worker.processes: \"257\" is out of bounds (0 to 256)\n", path);
    check(&outcome, false, 1, "", expected);
}

static void the_environment_names_the_configuration(void **state)
{
    (void)state;
    struct outcome outcome;
    assert_int_equal(setenv("TELLERLINE_CONFIG", "conf/tellerline.yaml", 1), 0);
    RUN(&outcome, "--check");
    check(&outcome, false, 0, "conf/tellerline.yaml: ok\n", "");
    RUN(&outcome, "--config", "other.yaml");
    check(&outcome, true, 0, "", "");
    assert_string_equal(outcome.config_path, "other.yaml");
    assert_int_equal(setenv("TELLERLINE_CONFIG", "", 1), 0);
    RUN(&outcome, "--quiet");
    check(&outcome, true, 0, "", "");
    assert_null(outcome.config_path);
    assert_int_equal(unsetenv("TELLERLINE_CONFIG"), 0);
}

/* ---- --healthcheck, against a real admin listener ---- */

static bool is_live(void *context)
{
    return *(const bool *)context;
}

static bool is_ready(void *context, char reason[160])
{
    (void)context;
    snprintf(reason, 160, "never");
    return false;
}

static void no_metrics(void *context, struct tl_text *out)
{
    (void)context;
    (void)out;
}

/* Starts a listener on a free port of the address and tells the programs about it. */
static struct tl_admin *start_listener(const char *host, const char *variable, bool *live,
                                       char address[80])
{
    struct tl_admin *admin = NULL;
    struct tl_error err = {0};
    struct tl_listen listen = {.port = 0};
    const struct tl_admin_source source = {
        .context = live, .live = is_live, .ready = is_ready, .metrics = no_metrics};
    snprintf(listen.host, sizeof(listen.host), "%s", host);
    assert_true(tl_admin_start(&admin, &listen, &source, NULL, &err));
    snprintf(address, 80, strchr(host, ':') != NULL ? "[%s]:%d" : "%s:%d", host, listening_port());
    assert_int_equal(setenv(variable, address, 1), 0);
    return admin;
}

static void check_health(int status, const char *format, const char *address)
{
    struct outcome outcome;
    char expected[200];
    snprintf(expected, sizeof(expected), format, address);
    RUN(&outcome, "--healthcheck");
    check(&outcome, false, status, status == 0 ? expected : "", status == 0 ? "" : expected);
}

static int clear_environment(void **state)
{
    (void)state;
    return unsetenv("TELLERLINE_ADMIN_WORKER") + unsetenv("TELLERLINE_HTTP_LISTEN");
}

static void healthcheck_asks_the_admin_listener(void **state)
{
    (void)state;
    static const char *const hosts[] = {"127.0.0.1", "0.0.0.0", "localhost", "::"};
    for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++) {
        bool live = true;
        char address[80];
        struct tl_admin *admin =
            start_listener(hosts[i], "TELLERLINE_ADMIN_WORKER", &live, address);
        check_health(0, "tellerline-test at %s is alive\n", address);
        live = false;
        check_health(1, "tellerline-test at %s answers /livez with 503\n", address);
        tl_admin_stop(&admin);
        check_health(1, "tellerline-test at %s does not answer\n", address);
    }
}

static void healthcheck_without_an_admin_listener_asks_the_other(void **state)
{
    (void)state;
    bool live = true;
    char address[80];
    struct tl_admin *admin = start_listener("127.0.0.1", "TELLERLINE_HTTP_LISTEN", &live, address);
    static const char *const not_to_be_asked[] = {"", "127.0.0.1:0"};
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(setenv("TELLERLINE_ADMIN_WORKER", not_to_be_asked[i], 1), 0);
        check_health(0, "tellerline-test at %s is alive\n", address);
    }
    tl_admin_stop(&admin);
    assert_int_equal(setenv("TELLERLINE_HTTP_LISTEN", "127.0.0.1:0", 1), 0);
    check_health(1, "%s: no listener with a fixed port is configured for /livez\n",
                 "tellerline-test");
}

static void healthcheck_needs_a_valid_configuration(void **state)
{
    (void)state;
    assert_int_equal(setenv("TELLERLINE_HTTP_LISTEN", "nowhere", 1), 0);
    struct outcome outcome;
    RUN(&outcome, "--healthcheck");
    assert_non_null(strstr(outcome.errors, "TELLERLINE_HTTP_LISTEN"));
    assert_int_equal(outcome.goes_on, false);
    assert_int_equal(outcome.status, 1);
    free(outcome.out);
    free(outcome.errors);
}

#define environment_test(f) cmocka_unit_test_setup_teardown(f, clear_environment, clear_environment)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_are_read),
        cmocka_unit_test(the_version_is_told),
        cmocka_unit_test(help_lists_all_options),
        cmocka_unit_test(a_wrong_command_line_exits_with_2),
        cmocka_unit_test(check_only_validates),
        cmocka_unit_test(the_environment_names_the_configuration),
        environment_test(healthcheck_asks_the_admin_listener),
        environment_test(healthcheck_without_an_admin_listener_asks_the_other),
        environment_test(healthcheck_needs_a_valid_configuration),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
