/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/text.h"

static void test_decodes_one_character(void **state)
{
    static const struct {
        const char *text;
        size_t bytes;
        unsigned code;
    } cases[] = {
        {"a", 1, 'a'},
        {"", 1, 0},
        {"\x7F", 1, 0x7F},
        {"\xC2\x80", 2, 0x80},
        {"\xED\x95\x9C", 3, 0xD55C},
        {"\xED\x9F\xBF", 3, 0xD7FF},
        {"\xEE\x80\x80", 3, 0xE000},
        {"\xF0\x90\x80\x80", 4, 0x10000},
        {"\xF4\x8F\xBF\xBF", 4, 0x10FFFF},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        unsigned code = 1;
        assert_int_equal(tl_utf8_decode(cases[i].text, &code), cases[i].bytes);
        assert_int_equal(code, cases[i].code);
        assert_true(tl_utf8_valid(cases[i].text));
    }
}

static void test_refuses_what_is_none(void **state)
{
    static const char *const cases[] = {
        "\x80",             /* a continuation first */
        "\xC1\xBF",         /* overlong */
        "\xE0\x9F\xBF",     /* overlong */
        "\xF0\x8F\xBF\xBF", /* overlong */
        "\xED\xA0\x80",     /* a surrogate */
        "\xF4\x90\x80\x80", /* beyond U+10FFFF */
        "\xF8\x88\x80\x80", /* five bytes */
        "\xED\x95",         /* cut short */
        "\xFF",
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        unsigned code;
        assert_int_equal(tl_utf8_decode(cases[i], &code), 0);
        assert_false(tl_utf8_valid(cases[i]));
    }
    assert_false(tl_utf8_valid("capacity\xFF"));
    assert_true(tl_utf8_valid("자리 12 → 11"));
}

static void test_copies_what_fits(void **state)
{
    char copy[5] = "....";
    (void)state;
    assert_int_equal(tl_text_copy(copy, sizeof(copy), "ab"), 2);
    assert_string_equal(copy, "ab");
    assert_int_equal(tl_text_copy(copy, sizeof(copy), "abcd"), 4);
    assert_string_equal(copy, "abcd");
    assert_int_equal(tl_text_copy(copy, sizeof(copy), "abcdefgh"), 4);
    assert_string_equal(copy, "abcd");
    assert_int_equal(tl_text_copy(copy, 1, "ab"), 0);
    assert_string_equal(copy, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_copies_what_fits),
        cmocka_unit_test(test_decodes_one_character),
        cmocka_unit_test(test_refuses_what_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
