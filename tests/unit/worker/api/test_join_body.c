/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "worker/api/body.h"
#include "worker/visit/secrets.h"

static void test_good_bodies(void **state)
{
    (void)state;
    static const struct {
        const char *text, *visitor, *lane;
    } cases[] = {
        {"{}", "", ""},
        {" {\"visitor\": \"bob\"} ", "bob", ""},
        {"{\"lane\":\"vip\",\"visitor\":\"a\\u0062c\"}", "abc", "vip"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tl_join_body body;
        struct tl_error err = {0};
        assert_true(tl_join_body_parse(cases[i].text, strlen(cases[i].text), &body, &err));
        assert_string_equal(body.visitor, cases[i].visitor);
        assert_string_equal(body.lane, cases[i].lane);
    }
}

static void test_bad_bodies(void **state)
{
    (void)state;
    static const struct {
        const char *text, *complaint;
    } cases[] = {
        {"x", "line 1, column 1"},
        {"{\n  \"visitor\": }", "line 2, column"},
        {"[]", "must be a JSON object"},
        {"\"bob\"", "not JSON"},
        {"{\"visitor\":1}", "\"visitor\" must be"},
        {"{\"visitor\":\"\"}", "\"visitor\" must be"},
        {"{\"visitor\":\"a b\"}", "\"visitor\" must be"},
        {"{\"visitor\":\"\\u00e4\"}", "\"visitor\" must be"},
        {"{\"visitor\":\"a\\nb\"}", "\"visitor\" must be"},
        {"{\"visitor\":\"1234567890123456789012345678901234567890123456789012345678901234X\"}",
         "\"visitor\" must be"},
        {"{\"lane\":null}", "\"lane\" must name"},
        {"{\"lane\":\"12345678901234567890123456789012\"}", "\"lane\" must name"},
        {"{\"invite\":\"\"}", "must be a string of 1 to 2048"},
        {"{\"invite\":7}", "must be a string of 1 to 2048"},
        {"{\"invite\":\"x\",\"lane\":\"vip\"}", "do not go with it"},
        {"{\"visitor\":\"v\",\"invite\":\"x\"}", "do not go with it"},
        {"{\"visitr\":\"x\"}", "unknown member \"visitr\""},
        {"{\"visitor\":\"a\",\"visitor\":\"b\"}", "line 1, column"},
        {"{} {}", "line 1, column"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tl_join_body body;
        struct tl_error err = {0};
        assert_false(tl_join_body_parse(cases[i].text, strlen(cases[i].text), &body, &err));
        assert_int_equal(err.kind, TL_ERR_INVALID);
        if (strstr(err.text, cases[i].complaint) == NULL)
            fail_msg("%s: %s", cases[i].text, err.text);
    }
}

/* Thousands of brackets must not exhaust the stack. */
static void test_deep_body(void **state)
{
    (void)state;
    struct tl_join_body body;
    char text[4096];
    memset(text, '[', sizeof(text));
    assert_false(tl_join_body_parse(text, sizeof(text), &body, NULL));
}

#define KEY "0123456789abcdef0123456789abcdef"

/* All secrets in a folder of their own; api_keys: the text of that file, NULL: there is none. mode
 * 0: no file is named. */
static bool load(const char *api_keys, mode_t mode, struct tl_secrets *secrets,
                 struct tl_error *err)
{
    static struct tl_config config;
    char folder[] = "/tmp/tl-secrets-XXXXXX";
    static const char *const names[] = {"ticket.keys", "pass.keys", "api.keys"};
    char *const paths[] = {config.secrets.ticket_keys, config.secrets.pass_keys,
                           config.secrets.api_keys};
    assert_non_null(mkdtemp(folder));
    for (size_t i = 0; i < 3; i++)
        snprintf(paths[i], sizeof(config.secrets.api_keys), "%s/%s", folder, names[i]);
    if (mode == 0)
        config.secrets.api_keys[0] = '\0';
    if (api_keys != NULL) {
        int fd = open(config.secrets.api_keys, O_CREAT | O_WRONLY, mode);
        assert_int_equal(write(fd, api_keys, strlen(api_keys)), strlen(api_keys));
        assert_int_equal(fchmod(fd, mode), 0);
        close(fd);
    }
    bool ok = tl_secrets_load(secrets, &config, true, err);
    for (size_t i = 0; i < 3; i++)
        unlink(paths[i]);
    assert_int_equal(rmdir(folder), 0);
    return ok;
}

static void test_api_keys(void **state)
{
    (void)state;
    struct tl_error err = {0};
    struct tl_secrets secrets;
    assert_true(load("# callers\nshop " KEY "\n\napp\t" KEY "X # second\n", 0600, &secrets, &err));
    assert_string_equal(tl_callers_find(&secrets.callers, KEY), "shop");
    assert_string_equal(tl_callers_find(&secrets.callers, KEY "X"), "app");
    assert_null(tl_callers_find(&secrets.callers, KEY "Y"));
    assert_null(tl_callers_find(&secrets.callers, "0123456789abcdef"));
    assert_null(tl_callers_find(&secrets.callers, ""));
    tl_secrets_free(&secrets);
    assert_null(tl_callers_find(&secrets.callers, KEY));

    for (mode_t mode = 0; mode <= 0600; mode += 0600) {
        assert_true(load(NULL, mode, &secrets, &err));
        assert_null(tl_callers_find(&secrets.callers, KEY));
        assert_null(tl_callers_find(&secrets.callers, ""));
        tl_secrets_free(&secrets);
    }
}

static void test_bad_api_keys(void **state)
{
    (void)state;
    static const char *const cases[] = {"shop\n", "shop short\n", KEY "\n", "shop " KEY " more\n",
                                        "a-name-that-is-longer-than-any-sensible " KEY "\n"};
    struct tl_secrets secrets;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tl_error err = {0};
        assert_false(load(cases[i], 0600, &secrets, &err));
        assert_non_null(strstr(err.text, ":1: expected"));
        assert_null(strstr(err.text, KEY)); /* never the key itself */
    }
    struct tl_error err = {0};
    assert_false(load("shop " KEY "\n", 0644, &secrets, &err));
    assert_non_null(strstr(err.text, "chmod"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good_bodies),  cmocka_unit_test(test_bad_bodies),
        cmocka_unit_test(test_deep_body),    cmocka_unit_test(test_api_keys),
        cmocka_unit_test(test_bad_api_keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
