#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/origin.h"
#include "worker/page/return_address.h"

static const char *const allowed[] = {"https://seats.example:8443", "http://[2001:db8::1]/any"};

static bool is_allowed(const char *address)
{
    return tl_return_address_allowed(address, "https://shop.example/checkout?a=b", allowed, 2);
}

static void test_allowed(void **state)
{
    (void)state;
    static const char *const cases[] = {
        "https://shop.example",
        "https://shop.example/",
        "https://shop.example/seats?row=4&seat=5#map",
        "https://shop.example?x",
        "https://shop.example#x",
        "https://shop.example:443/",
        "HTTPS://Shop.EXAMPLE/Path",
        "https://shop.example//double",
        "https://shop.example/@somebody",
        "https://shop.example/?next=https://evil.example/",
        "https://seats.example:8443/x",
        "http://[2001:DB8::1]:80/",
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (!is_allowed(cases[i]))
            fail_msg("refused: %s", cases[i]);
    }
}

static void test_refused(void **state)
{
    (void)state;
    static const char *const cases[] = {
        "",
        "/",
        "/path",
        "//shop.example/",
        "///shop.example/",
        "shop.example",
        "https:shop.example",
        "https:/shop.example",
        "https:///shop.example",
        "https://",
        "https://:443/",
        "http://shop.example/",      /* not the same scheme */
        "https://shop.example:444/", /* port */
        "https://www.shop.example/", /* host */
        "https://shop.example.evil.example/",
        "https://shop.exampleevil/",
        "https://shop.example./",
        "https://evil.example/https://shop.example/",
        "https://evil.example?https://shop.example/",
        "https://shop.example@evil.example/",
        "https://user:password@shop.example/",
        "https://shop.example:443@evil.example/",
        "https://evil.example#@shop.example/",
        "https://shop.example\\@evil.example/",
        "https://evil.example\\shop.example/",
        "https:\\\\shop.example/",
        "https://shop.example%2f@evil.example/",
        "https://shop%2eexample/",
        "https://shop.example /",
        " https://shop.example/",
        "https://shop.example/\n",
        "https://shop.example/\r\nSet-Cookie: a=b",
        "https://shop.example/\t",
        "https://shop.example/\x7f",
        "https://shop.ex\u00e4mple/",
        "https://shop.example/\xed\x95\x9c",
        "https://shop.example/\"onload=",
        "https://shop.example/<script>",
        "https://shop.example:/",
        "https://shop.example:0/",
        "https://shop.example:65979/", /* 443 + 65536 */
        "https://shop.example:0000443/",
        "https://shop.example:-443/",
        "javascript:alert(1)",
        "javascript://shop.example/%0aalert(1)",
        "data:text/html,x",
        "ftp://shop.example/",
        "http://[2001:db8::2]/",
        "http://[2001:db8::1/",
        "http://[]/",
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (is_allowed(cases[i]))
            fail_msg("taken: %s", cases[i]);
    }
    assert_false(is_allowed(NULL));
}

static void test_nothing_is_allowed_without_a_target(void **state)
{
    (void)state;
    assert_false(tl_return_address_allowed("https://shop.example/", NULL, NULL, 0));
    assert_false(tl_return_address_allowed("https://shop.example/", "", NULL, 0));
    assert_true(tl_return_address_allowed("https://seats.example:8443/", "", allowed, 2));
}

static void test_length(void **state)
{
    (void)state;
    char address[TL_ADDRESS_MAX + 1] = "https://shop.example/";
    size_t start = strlen(address);
    memset(address + start, 'a', sizeof(address) - start);
    address[TL_ADDRESS_MAX] = '\0';
    assert_false(is_allowed(address));
    address[TL_ADDRESS_MAX - 1] = '\0';
    assert_true(is_allowed(address));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_allowed),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_nothing_is_allowed_without_a_target),
        cmocka_unit_test(test_length),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
