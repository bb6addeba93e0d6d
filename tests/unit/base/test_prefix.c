/* SPDX-License-Identifier: Apache-2.0 */
/* Prefixes of IP addresses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/net.h"

static struct tl_prefix prefix(const char *text)
{
    struct tl_error err = {0};
    struct tl_prefix result;
    if (!tl_prefix_parse(text, &result, &err))
        fail_msg("%s", err.text);
    return result;
}

static struct tl_prefix customer(const char *text)
{
    struct tl_address address;
    assert_true(tl_address_parse(text, &address));
    return tl_prefix_of(&address, TL_PREFIX_IPV4, TL_PREFIX_IPV6);
}

static void prefixes_are_written_in_one_form(void **state)
{
    (void)state;
    static const char *const texts[][2] = {
        {"192.0.2.1", "192.0.2.1"},
        {"192.0.2.1/32", "192.0.2.1"},
        {"192.0.2.129/25", "192.0.2.128/25"},
        {"10.1.2.3/0", "0.0.0.0/0"},
        {"::ffff:10.1.2.3/104", "10.0.0.0/8"},
        {"2001:DB8:1:1ff::5/56", "2001:db8:1:100::/56"},
        {"2001:db8::1/128", "2001:db8::1"},
        {"::/0", "::/0"},
        {"2001:db8:1234:5678:9abc:def1:2345:6789/127",
         "2001:db8:1234:5678:9abc:def1:2345:6788/127"},
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct tl_prefix one = prefix(texts[i][0]);
        char text[TL_PREFIX_TEXT_MAX];
        tl_prefix_format(&one, text);
        assert_string_equal(text, texts[i][1]);
        struct tl_prefix again = prefix(text);
        assert_true(tl_prefix_equal(&one, &again));
    }
}

static void a_customer_is_an_ipv4_address_or_an_ipv6_56(void **state)
{
    (void)state;
    struct tl_prefix v4 = customer("192.0.2.1:5000"), other_v4 = customer("192.0.2.2");
    struct tl_prefix v6 = customer("2001:db8:0:1ff::1"), same_v6 = customer("2001:db8:0:100::ff");
    struct tl_prefix other_v6 = customer("2001:db8:0:200::1");
    assert_false(tl_prefix_equal(&v4, &other_v4));
    assert_true(tl_prefix_equal(&v6, &same_v6));
    assert_false(tl_prefix_equal(&v6, &other_v6));
    assert_int_equal(v4.bits, 128);
    assert_int_equal(v6.bits, 56);
}

static void a_prefix_contains_its_addresses_only(void **state)
{
    (void)state;
    struct tl_prefix odd = prefix("10.32.0.0/11");
    struct tl_address in, out;
    assert_true(tl_address_parse("10.63.255.255", &in) && tl_address_parse("10.64.0.0", &out));
    assert_true(tl_prefix_contains(&odd, &in));
    assert_false(tl_prefix_contains(&odd, &out));
    assert_true(tl_address_parse("::a3f:ffff", &out)); /* the same bits, but no IPv4 */
    assert_false(tl_prefix_contains(&odd, &out));
}

static void what_is_no_prefix_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"",
                                      "/",
                                      "/8",
                                      "10.0.0.0/33",
                                      "::1/129",
                                      "10.0.0.0/",
                                      "10.0.0.0/x",
                                      "10.0.0.0/-1",
                                      "10.0.0.0/8/8",
                                      "host",
                                      "[::1]/64",
                                      "1.2.3.4:80",
                                      "10.0.0.0/4294967304"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct tl_error err = {0};
        struct tl_prefix one;
        if (tl_prefix_parse(bad[i], &one, &err))
            fail_msg("taken for a prefix: %s", bad[i]);
        assert_int_equal(err.kind, TL_ERR_INVALID);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prefixes_are_written_in_one_form),
        cmocka_unit_test(a_customer_is_an_ipv4_address_or_an_ipv6_56),
        cmocka_unit_test(a_prefix_contains_its_addresses_only),
        cmocka_unit_test(what_is_no_prefix_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
