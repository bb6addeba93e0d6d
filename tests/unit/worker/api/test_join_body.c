/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "worker/api/body.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good_bodies),
        cmocka_unit_test(test_bad_bodies),
        cmocka_unit_test(test_deep_body),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
