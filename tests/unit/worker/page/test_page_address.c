/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/origin.h"
#include "worker/page/page_address.h"

/* ---- where a visitor may return to ---- */

static const char allowed[] = "https://seats.example:8443  http://[2001:db8::1]/any ";

static bool is_allowed(const char *address)
{
    return tl_return_address_allowed(address, "https://shop.example/checkout?a=b", allowed);
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
    assert_false(tl_return_address_allowed("https://shop.example/", NULL, ""));
    assert_false(tl_return_address_allowed("https://shop.example/", "", ""));
    assert_true(tl_return_address_allowed("https://seats.example:8443/", "", allowed));
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

static void an_address_is_encoded_as_browsers_do(void **state)
{
    (void)state;
    static const struct {
        const char *text, *encoded;
    } cases[] = {
        {"https://shop.example/a?b=c&d=%26#e", "https://shop.example/a?b=c&d=%26#e"},
        {"https://shop.example/\xed\x95\x9c a", "https://shop.example/%ED%95%9C%20a"},
        {"https://shop.example/\"<script>`{|}^",
         "https://shop.example/%22%3Cscript%3E%60%7B%7C%7D%5E"},
        {"https://shop.example\\@evil.example/", NULL},
        {"https://shop.example/\r\nSet-Cookie: a=b", NULL},
        {"https://shop.example/\x7f", NULL},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char address[TL_ADDRESS_MAX] = "";
        bool ok = tl_address_append(address, cases[i].text, false);
        assert_int_equal(ok, cases[i].encoded != NULL);
        if (ok)
            assert_string_equal(address, cases[i].encoded);
        assert_true(!ok || is_allowed(address));
    }
    /* What would be another host after encoding is none: escapes are not allowed there. */
    char host[TL_ADDRESS_MAX] = "";
    assert_true(tl_address_append(host, "https://shop.example\xe3\x80\x82.evil.example/", false));
    assert_false(is_allowed(host));
    char part[TL_ADDRESS_MAX] = "https://shop.example/?";
    assert_true(tl_address_append(part, "a&b=c%d+e#f", true));
    assert_string_equal(part, "https://shop.example/?a%26b%3Dc%25d%2Be%23f");
    char longest[TL_ADDRESS_MAX + 1];
    memset(longest, 'a', sizeof(longest) - 1);
    longest[TL_ADDRESS_MAX] = '\0';
    char full[TL_ADDRESS_MAX] = "";
    assert_false(tl_address_append(full, longest, false));
    assert_true(strlen(full) < TL_ADDRESS_MAX);
}

/* ---- the page itself ---- */

static void test_the_page(void **state)
{
    (void)state;
    struct tl_text out = {0};
    struct tl_view view = {
        .page = TL_PAGE_LEFT, .queue = "q", .state = {.status = TL_LINE_WAITING, .ahead = 4}};
    tl_page_address(&view, "", NULL, NULL, &out);
    assert_string_equal(out.data, "/q/q");
    view.page = TL_PAGE_WAITING;
    view.ticket = "a b";
    view.return_url = "https://x.example/?a=b";
    view.invite = "i.j";
    tl_page_address(&view, "/leave", "ko", NULL, &out);
    assert_string_equal(out.data, "/q/q/q/q/leave?lang=ko&ticket=a%20b&invite=i.j&from=5&return="
                                  "https%3A%2F%2Fx.example%2F%3Fa%3Db");
    tl_text_free(&out);
    view = (struct tl_view){.page = TL_PAGE_WAITING,
                            .queue = "q",
                            .state = {.status = TL_LINE_WAITING, .ahead = 4},
                            .place_name = "Q5T9-4XDR",
                            .return_url = "https://x.example/?a=b"};
    tl_page_address(&view, "", NULL, NULL, &out);
    tl_page_address(&view, "/transfer", NULL, NULL, &out);
    assert_string_equal(out.data, "/q/q?from=5&return=https%3A%2F%2Fx.example%2F%3Fa%3Db"
                                  "/q/q/transfer?from=5&place=Q5T9-4XDR&return="
                                  "https%3A%2F%2Fx.example%2F%3Fa%3Db");
    tl_text_free(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_allowed),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_nothing_is_allowed_without_a_target),
        cmocka_unit_test(test_length),
        cmocka_unit_test(an_address_is_encoded_as_browsers_do),
        cmocka_unit_test(test_the_page),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
