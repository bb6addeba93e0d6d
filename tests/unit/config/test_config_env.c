/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>
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
#include "common/config/read.h"
#include "common/config/table.h"
#include "common/config/value.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

struct bad {
    const char *variable;
    const char *message;
};

/* The configuration of a file whose text is given, or of no file for NULL. */
static const struct tl_config *load(const char *yaml, struct tl_error *err)
{
    char path[] = "/tmp/tellerline-test-XXXXXX";
    if (yaml == NULL)
        return tl_config_load(NULL, err);
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, yaml, strlen(yaml)), strlen(yaml));
    assert_int_equal(close(fd), 0);
    const struct tl_config *config = tl_config_load(path, err);
    assert_int_equal(unlink(path), 0);
    return config;
}

/* No TELLERLINE_* variable is left from one test to the next. */
static int clear_environment(void **state)
{
    (void)state;
    for (bool again = true; again;) {
        again = false;
        for (char **at = environ; *at != NULL && !again; at++) {
            if (strncmp(*at, "TELLERLINE_", 11) != 0)
                continue;
            char name[128];
            snprintf(name, sizeof(name), "%.*s", (int)strcspn(*at, "="), *at);
            if (unsetenv(name) != 0)
                return -1;
            again = true;
        }
    }
    return 0;
}

static void set(const char *name, const char *value)
{
    assert_int_equal(setenv(name, value, 1), 0);
}

static void the_environment_overrides_the_file(void **state)
{
    (void)state;
    struct tl_error err = {0};
    set("TELLERLINE_REDIS_URL", "unix:///run/redis.sock");
    set("TELLERLINE_HTTP_LISTEN", "127.0.0.1:9");
    set("TELLERLINE_WORKER_PROCESSES", "12");
    set("TELLERLINE_HTTP_PUBLIC_URL", "https://wait.example");
    set("TELLERLINE_HTTP_JOIN_WAIT", "250ms");
    set("TELLERLINE_ADMIN_WORKER", "");
    set("TELLERLINE_LOG_LEVEL", "error");
    const struct tl_config *config = load("redis: {url: redis://h, timeout: 7s}\n"
                                          "worker: {processes: 3}\n",
                                          &err);
    assert_non_null(config);
    assert_string_equal(config->redis.url, "unix:///run/redis.sock");
    assert_int_equal(config->redis.timeout_ms, 7000);
    assert_string_equal(config->http.listen.host, "127.0.0.1");
    assert_int_equal(config->http.listen.port, 9);
    assert_int_equal(config->worker.processes, 12);
    assert_string_equal(config->http.public_url, "https://wait.example");
    assert_int_equal(config->http.join_wait_ms, 250);
    assert_int_equal(config->admin.worker.port, -1);
    assert_int_equal(config->log.level, TL_LOG_ERROR);
    tl_config_free(&config);
}

static void every_process_setting_has_a_variable(void **state)
{
    (void)state;
    size_t n;
    const struct tl_setting *rows = tl_config_table(&n);
    for (size_t i = 0; i < n; i++) {
        struct tl_error err = {0};
        char name[TL_SETTING_PATH_MAX];
        tl_setting_env_name(&rows[i], name);
        set(name, rows[i].fallback);
        const struct tl_config *config = load(NULL, &err);
        if (config == NULL)
            fail_msg("%s", err.text);
        tl_config_free(&config);
    }
}

static void queues_of_the_environment_replace_those_of_the_file(void **state)
{
    (void)state;
    struct tl_error err = {0};
    const char *file = "queues: {a: {capacity: 1}, b: {}}\n";
    set("TELLERLINE_QUEUES", "{c: {capacity: 5, rate: {every: 1s}}, concert-2026: {lanes: [x]}}");
    const struct tl_config *config = load(file, &err);
    assert_non_null(config);
    assert_int_equal(config->n_queues, 2);
    assert_string_equal(config->queues[0].name, "c");
    assert_int_equal(config->queues[0].settings.capacity, 5);
    assert_int_equal(config->queues[0].settings.rate.every_ms, 1000);
    assert_string_equal(config->queues[1].name, "concert-2026");
    tl_config_free(&config);

    static const char *const none[] = {"", "{}", "~"};
    for (size_t i = 0; i < COUNT(none); i++) {
        set("TELLERLINE_QUEUES", none[i]);
        config = load(file, &err);
        assert_non_null(config);
        assert_int_equal(config->n_queues, 0);
        tl_config_free(&config);
    }
}

static void bad_variables_are_refused(void **state)
{
    (void)state;
    static const struct bad cases[] = {
        {"TELLERLINE_WORKER_PROCESSES=two",
         "environment: TELLERLINE_WORKER_PROCESSES: \"two\" is not a "
         "whole number (0 to 256)"},
        {"TELLERLINE_WORKER_PROCESSES=",
         "environment: TELLERLINE_WORKER_PROCESSES: \"\" is not a whole "
         "number (0 to 256)"},
        {"TELLERLINE_HTTP_LISTEN=8080", "environment: TELLERLINE_HTTP_LISTEN: \"8080\" is not a "
                                        "listening address (host:port or [IPv6 "
                                        "address]:port, port 0 to 65535)"},
        {"TELLERLINE_REDIS_TIMEOUT=2000", "environment: TELLERLINE_REDIS_TIMEOUT: \"2000\" is not "
                                          "a duration such as 250ms, 10s, 5m, 2h "
                                          "or 1d (10ms to 5m)"},
        {"TELLERLINE_WORKER_PROCESES=2",
         "environment: unknown variable \"TELLERLINE_WORKER_PROCESES\" (did you mean "
         "TELLERLINE_WORKER_PROCESSES?); names with TELLERLINE_ are settings, see the "
         "configuration's "
         "documentation"},
        {"TELLERLINE_QUEUE={}",
         "environment: unknown variable \"TELLERLINE_QUEUE\" (did you mean TELLERLINE_QUEUES?); "
         "names "
         "with TELLERLINE_ are settings, see the configuration's documentation"},
        {"TELLERLINE_=1", "environment: unknown variable \"TELLERLINE_\"; names with TELLERLINE_ "
                          "are settings, see the "
                          "configuration's documentation"},
        {"TELLERLINE_SEEDS=1", "environment: unknown variable \"TELLERLINE_SEEDS\"; names with "
                               "TELLERLINE_ are settings, see "
                               "the configuration's documentation"},
        {"TELLERLINE_redis_url=x", "environment: unknown variable \"TELLERLINE_redis_url\"; names "
                                   "with TELLERLINE_ are settings, "
                                   "see the configuration's documentation"},
        {"TELLERLINE_QUEUES={a: {capasity: 1}}",
         "TELLERLINE_QUEUES:1:6: queues.a: unknown setting \"capasity\"; did you mean "
         "\"capacity\"?"},
        {"TELLERLINE_QUEUES=[a]",
         "TELLERLINE_QUEUES:1:1: queues: expected a mapping from names to settings, found a list"},
        {"TELLERLINE_QUEUES={a: ", "TELLERLINE_QUEUES:2:1: not valid YAML: did not find expected "
                                   "node content, while parsing a flow node"},
        {"TELLERLINE_HTTP_LISTEN=127.0.0.1:8081",
         "environment: http.listen and admin.worker are both 127.0.0.1:8081; the worker needs two "
         "different addresses, and visitors must not reach the second"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct tl_error err = {0};
        char name[128];
        snprintf(name, sizeof(name), "%.*s", (int)strcspn(cases[i].variable, "="),
                 cases[i].variable);
        set(name, strchr(cases[i].variable, '=') + 1);
        assert_null(load(NULL, &err));
        assert_string_equal(err.text, cases[i].message);
        assert_int_equal(unsetenv(name), 0);
    }
}

/* A file with these bytes; the caller unlinks it. */
static void write_file(char path[64], const char *bytes, size_t length)
{
    snprintf(path, 64, "/tmp/tellerline-test-XXXXXX");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, length), length);
    assert_int_equal(close(fd), 0);
}

/* What a queue of the file needs may come from the environment, and the other way round. */
static void a_challenge_service_may_come_from_both(void **state)
{
    (void)state;
    static const char queue[] = "queues: {a: {challenge: external}}\n";
    struct tl_error err = {0};
    assert_null(load(queue, &err));
    assert_non_null(strstr(err.text, ":1:25: queues.a: challenge: external needs"));
    set("TELLERLINE_CHALLENGE_SERVICE_SITE_KEY", "key");
    set("TELLERLINE_SECRETS_CHALLENGE_SECRET", "secret");
    const struct tl_config *config = load(queue, &err);
    if (config == NULL)
        fail_msg("%s", err.text);
    assert_string_equal(config->secrets.challenge_secret, "/tmp/secret");
    tl_config_free(&config);
    unsetenv("TELLERLINE_CHALLENGE_SERVICE_SITE_KEY");
    set("TELLERLINE_QUEUES", "{b: {challenge: external}}");
    assert_null(load("", &err));
    assert_string_equal(err.text, "TELLERLINE_QUEUES:1:17: queues.b: challenge: external needs "
                                  "challenge_service.site_key");
}

static void paths_start_at_the_file(void **state)
{
    (void)state;
    struct tl_error err = {0};
    char here[PATH_MAX];
    char expected[PATH_MAX + 32];
    assert_non_null(getcwd(here, sizeof(here)));
    const struct tl_config *config =
        load("secrets: {pass_keys: p, api_keys: /a, invite_keys: ''}\nredis: {ca_file: ca}\n"
             "brand: {logo: l.svg, style: s.css, languages: texts}",
             &err);
    assert_non_null(config);
    assert_string_equal(config->secrets.ticket_keys, "/tmp/secrets/ticket.keys");
    assert_string_equal(config->secrets.admin_token, "/tmp/secrets/admin.token");
    assert_string_equal(config->secrets.pass_keys, "/tmp/p");
    assert_string_equal(config->secrets.api_keys, "/a");
    assert_string_equal(config->secrets.invite_keys, "");
    assert_string_equal(config->redis.ca_file, "/tmp/ca");
    assert_string_equal(config->brand.logo, "/tmp/l.svg");
    assert_string_equal(config->brand.style, "/tmp/s.css");
    assert_string_equal(config->brand.languages, "/tmp/texts");
    tl_config_free(&config);
    set("TELLERLINE_SECRETS_TICKET_KEYS", "of/environment");
    config = tl_config_load("conf/tellerline.yaml", &err); /* relative itself */
    if (config == NULL)
        fail_msg("%s", err.text);
    snprintf(expected, sizeof(expected), "%s/conf/of/environment", here);
    assert_string_equal(config->secrets.ticket_keys, expected);
    tl_config_free(&config);
    config = load(NULL, &err);
    assert_non_null(config);
    snprintf(expected, sizeof(expected), "%s/of/environment", here);
    assert_string_equal(config->secrets.ticket_keys, expected);
    tl_config_free(&config);
    char longest[256];
    memset(longest, 'x', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = '\0';
    set("TELLERLINE_SECRETS_TICKET_KEYS", longest);
    assert_null(load(NULL, &err));
    assert_non_null(strstr(err.text, "is longer than 255 bytes"));
}

static void a_value_may_stand_in_a_file(void **state)
{
    (void)state;
    static const char *const texts[] = {"redis://u:p@h", "redis://u:p@h\n", "redis://u:p@h\r\n"};
    for (size_t i = 0; i < COUNT(texts); i++) {
        struct tl_error err = {0};
        char path[64];
        write_file(path, texts[i], strlen(texts[i]));
        set("TELLERLINE_REDIS_URL_FILE", path);
        const struct tl_config *config = load("redis: {url: redis://of-the-file}\n", &err);
        if (config == NULL)
            fail_msg("%s", err.text);
        assert_string_equal(config->redis.url, "redis://u:p@h");
        tl_config_free(&config);
        assert_int_equal(unlink(path), 0);
    }
}

static void queues_may_stand_in_a_file(void **state)
{
    (void)state;
    struct tl_error err = {0};
    char path[64];
    static const char text[] = "a:\n  capacity: 7\nb: {}\n";
    write_file(path, text, strlen(text));
    set("TELLERLINE_QUEUES_FILE", path);
    const struct tl_config *config = load("queues: {c: {}}\n", &err);
    assert_non_null(config);
    assert_int_equal(config->n_queues, 2);
    assert_int_equal(config->queues[0].settings.capacity, 7);
    tl_config_free(&config);
    assert_int_equal(unlink(path), 0);
}

/* `redis.ca_file` is a setting of its own, and its value may stand in a file as well. */
static void a_setting_whose_name_ends_so_is_itself(void **state)
{
    (void)state;
    struct tl_error err = {0};
    char path[64];
    set("TELLERLINE_REDIS_CA_FILE", "/etc/ca.pem");
    const struct tl_config *config = load(NULL, &err);
    assert_non_null(config);
    assert_string_equal(config->redis.ca_file, "/etc/ca.pem");
    tl_config_free(&config);

    assert_int_equal(unsetenv("TELLERLINE_REDIS_CA_FILE"), 0);
    write_file(path, "/etc/other.pem\n", 15);
    set("TELLERLINE_REDIS_CA_FILE_FILE", path);
    config = load(NULL, &err);
    assert_non_null(config);
    assert_string_equal(config->redis.ca_file, "/etc/other.pem");
    tl_config_free(&config);
    assert_int_equal(unlink(path), 0);
}

struct bad_file {
    const char *variable;
    const char *bytes;
    size_t length;
    const char *message; /* %s: the file */
};

static void bad_files_are_refused(void **state)
{
    (void)state;
    static const struct bad_file cases[] = {
        {"TELLERLINE_WORKER_PROCESSES", "two\n", 4,
         "environment: TELLERLINE_WORKER_PROCESSES_FILE: \"two\" is not a whole number (0 to 256)"},
        {"TELLERLINE_WORKER_PROCESSES", "2\n\n", 3,
         "environment: TELLERLINE_WORKER_PROCESSES_FILE: \"2?\" is not a whole number (0 to "
         "256)"},
        {"TELLERLINE_REDIS_URL", "redis://h\0x", 11,
         "environment: TELLERLINE_REDIS_URL_FILE: %s holds a zero byte"},
        {"TELLERLINE_QUEUES", "{a: {capasity: 1}}", 18,
         "TELLERLINE_QUEUES_FILE:1:6: queues.a: unknown setting \"capasity\"; did you mean "
         "\"capacity\"?"},
        {"TELLERLINE_REDIS_ULR", "redis://h", 9,
         "environment: unknown variable \"TELLERLINE_REDIS_ULR_FILE\" (did you mean "
         "TELLERLINE_REDIS_URL_FILE?); names with TELLERLINE_ are settings, see the "
         "configuration's documentation"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct tl_error err = {0};
        char path[64];
        char name[64];
        char message[256];
        write_file(path, cases[i].bytes, cases[i].length);
        snprintf(name, sizeof(name), "%s_FILE", cases[i].variable);
        const char *hole = strstr(cases[i].message, "%s");
        if (hole == NULL)
            snprintf(message, sizeof(message), "%s", cases[i].message);
        else
            snprintf(message, sizeof(message), "%.*s%s%s", (int)(hole - cases[i].message),
                     cases[i].message, path, hole + 2);
        set(name, path);
        assert_null(load(NULL, &err));
        assert_string_equal(err.text, message);
        assert_int_equal(unsetenv(name), 0);
        assert_int_equal(unlink(path), 0);
    }
}

static void files_that_cannot_be_read_are_refused(void **state)
{
    (void)state;
    struct tl_error err = {0};
    set("TELLERLINE_REDIS_URL_FILE", "/nowhere/redis.url");
    assert_null(load(NULL, &err));
    assert_string_equal(err.text, "environment: TELLERLINE_REDIS_URL_FILE: cannot open "
                                  "/nowhere/redis.url: No such file or directory");
    set("TELLERLINE_REDIS_URL_FILE", "/tmp");
    assert_null(load(NULL, &err));
    assert_string_equal(err.text, "environment: TELLERLINE_REDIS_URL_FILE: cannot read /tmp: "
                                  "Is a directory");
    set("TELLERLINE_REDIS_URL_FILE", "/dev/zero");
    assert_null(load(NULL, &err));
    assert_string_equal(err.text, "environment: TELLERLINE_REDIS_URL_FILE: /dev/zero is larger "
                                  "than 1048576 bytes");
}

static void a_value_and_a_file_exclude_each_other(void **state)
{
    (void)state;
    static const char *const settings[] = {"TELLERLINE_REDIS_URL", "TELLERLINE_QUEUES"};
    for (size_t i = 0; i < COUNT(settings); i++) {
        struct tl_error err = {0};
        char name[64];
        char message[160];
        snprintf(name, sizeof(name), "%s_FILE", settings[i]);
        snprintf(message, sizeof(message),
                 "environment: both %s and %s are given; only one of them may be", settings[i],
                 name);
        set(settings[i], "");
        set(name, "/dev/null");
        assert_null(load(NULL, &err));
        assert_string_equal(err.text, message);
        assert_int_equal(unsetenv(settings[i]), 0);
        assert_int_equal(unsetenv(name), 0);
    }
}

static void variables_of_the_tests_and_of_others_are_passed_over(void **state)
{
    (void)state;
    struct tl_error err = {0};
    static char *environment[] = {"TELLERLINE_SEED=1",
                                  "TELLERLINE_TEST_WRITE_DOCS=1",
                                  "TELLERLINE_TEST_=",
                                  "TELLERLINE=x",
                                  "TELLERLINE_CONFIG=/etc/tellerline.yaml",
                                  "XTELLERLINE_FOO=1",
                                  "no equals sign",
                                  "TELLERLINE_NEITHER",
                                  NULL};
    const struct tl_config *config = load(NULL, &err);
    assert_non_null(config);
    struct tl_config copy = *config;
    struct tl_mistakes mistakes = {0};
    tl_config_read_env(&copy, environment, &mistakes);
    assert_int_equal(mistakes.n, 0);
    assert_memory_equal(&copy, config, sizeof(copy));
    tl_config_free(&config);
}

static void a_bad_file_is_refused_before_the_environment(void **state)
{
    (void)state;
    struct tl_error err = {0};
    set("TELLERLINE_WORKER_PROCESSES", "257");
    assert_null(load("worker: {processes: 257}\n", &err));
    assert_non_null(
        strstr(err.text, ":1:21: worker.processes: \"257\" is out of bounds (0 to 256)"));
}

#define environment_test(f) cmocka_unit_test_setup_teardown(f, clear_environment, clear_environment)

int main(void)
{
    const struct CMUnitTest tests[] = {
        environment_test(the_environment_overrides_the_file),
        environment_test(every_process_setting_has_a_variable),
        environment_test(queues_of_the_environment_replace_those_of_the_file),
        environment_test(bad_variables_are_refused),
        environment_test(a_challenge_service_may_come_from_both),
        environment_test(paths_start_at_the_file),
        environment_test(a_value_may_stand_in_a_file),
        environment_test(queues_may_stand_in_a_file),
        environment_test(a_setting_whose_name_ends_so_is_itself),
        environment_test(bad_files_are_refused),
        environment_test(files_that_cannot_be_read_are_refused),
        environment_test(a_value_and_a_file_exclude_each_other),
        environment_test(variables_of_the_tests_and_of_others_are_passed_over),
        environment_test(a_bad_file_is_refused_before_the_environment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
