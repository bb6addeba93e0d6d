/* SPDX-License-Identifier: Apache-2.0 */
/* Origins of addresses, and lists of them. What tl_origin_parse refuses is shown with return
 * addresses, in tests/unit/worker/page/test_page_address.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/origin.h"

static bool same(const char *a, const char *b)
{
    struct tl_origin first, second;
    if (!tl_origin_parse(a, &first) || !tl_origin_parse(b, &second))
        fail_msg("no origin: %s or %s", a, b);
    return tl_origin_same(&first, &second);
}

static void an_origin_is_scheme_host_and_port(void **state)
{
    (void)state;
    assert_true(same("https://shop.example", "HTTPS://Shop.Example:443/path?x#y"));
    assert_true(same("http://[::1]:80", "http://[::1]/"));
    assert_false(same("https://shop.example", "http://shop.example"));
    assert_false(same("https://shop.example", "https://shop.example:8443"));
    assert_false(same("https://shop.example", "https://shop.example.evil"));
    struct tl_origin origin;
    static const char *const none[] = {
        "",     "null",        "shop.example",     "//shop.example",
        "ftp:", "https://a@b", "https://a:0/path", "https://a:70000"};
    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
        if (tl_origin_parse(none[i], &origin))
            fail_msg("taken for an origin: %s", none[i]);
    }
}

static void a_list_holds_exactly_its_origins(void **state)
{
    (void)state;
    static const char list[] = " https://shop.example  http://localhost:3000 ";
    struct tl_error err = {0};
    struct tl_origin origin;
    assert_true(tl_origins_valid(list, &err));
    static const char *const in[] = {"https://shop.example", "https://shop.example:443",
                                     "http://localhost:3000"};
    static const char *const out[] = {"http://shop.example", "https://www.shop.example",
                                      "http://localhost", "https://shop.exampl"};
    for (size_t i = 0; i < sizeof(in) / sizeof(in[0]); i++)
        assert_true(tl_origin_parse(in[i], &origin) && tl_origins_contain(list, &origin));
    for (size_t i = 0; i < sizeof(out) / sizeof(out[0]); i++)
        assert_true(tl_origin_parse(out[i], &origin) && !tl_origins_contain(list, &origin));
    assert_true(tl_origins_valid("", &err));
    assert_false(tl_origins_contain("", &origin));
}

static void a_list_of_anything_else_is_refused(void **state)
{
    (void)state;
    static const char *const lists[] = {"*",
                                        "null",
                                        "shop.example",
                                        "https://*.example",
                                        "https://shop.example/",
                                        "https://shop.example/path",
                                        "https://user@shop.example",
                                        "https://shop.example,https://b.example",
                                        "https://shop.example javascript:x"};
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        struct tl_error err = {0};
        if (tl_origins_valid(lists[i], &err))
            fail_msg("accepted: %s", lists[i]);
        assert_non_null(strstr(err.text, "is not an origin"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_origin_is_scheme_host_and_port),
        cmocka_unit_test(a_list_holds_exactly_its_origins),
        cmocka_unit_test(a_list_of_anything_else_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
