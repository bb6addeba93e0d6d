/* SPDX-License-Identifier: Apache-2.0 */
/* IP addresses as clients and proxies write them. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/net.h"

static struct tl_address address(const char *text)
{
    struct tl_address result;
    if (!tl_address_parse(text, &result))
        fail_msg("not taken for an address: %s", text);
    return result;
}

static void every_spelling_gives_one_form(void **state)
{
    (void)state;
    static const char *const v4[] = {"192.0.2.1", "192.0.2.1:80", "::ffff:192.0.2.1",
                                     "[::ffff:192.0.2.1]:80"};
    static const char *const v6[] = {"2001:db8::1", "[2001:db8::1]", "[2001:DB8:0::1]:8080"};
    for (size_t i = 0; i < sizeof(v4) / sizeof(v4[0]); i++) {
        struct tl_address one = address(v4[i]), plain = address(v4[0]);
        assert_memory_equal(&one, &plain, sizeof(one));
        assert_true(tl_address_is_ipv4(&one));
    }
    for (size_t i = 0; i < sizeof(v6) / sizeof(v6[0]); i++) {
        struct tl_address one = address(v6[i]), plain = address(v6[0]);
        assert_memory_equal(&one, &plain, sizeof(one));
        assert_false(tl_address_is_ipv4(&one));
    }
}

static void what_is_no_address_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"",           "localhost",    "1.2.3",  "1.2.3.4.5",
                                      "unknown",    "[::1",         "[::1]x", "1.2.3.4:5:6",
                                      "1.2.3.4/24", "fe80::1%eth0", "_host",  "1.2.3.4 "};
    struct tl_address one;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        if (tl_address_parse(bad[i], &one))
            fail_msg("taken for an address: %s", bad[i]);
}

static void sockets_have_the_same_form(void **state)
{
    (void)state;
    struct sockaddr_in v4 = {.sin_family = AF_INET};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
    const struct sockaddr local = {.sa_family = AF_UNIX};
    struct tl_address one, expected = address("192.0.2.7");
    assert_int_equal(inet_pton(AF_INET, "192.0.2.7", &v4.sin_addr), 1);
    assert_int_equal(inet_pton(AF_INET6, "2001:db8::7", &v6.sin6_addr), 1);
    assert_true(tl_address_from((const struct sockaddr *)(const void *)&v4, &one));
    assert_memory_equal(&one, &expected, sizeof(one));
    expected = address("2001:db8::7");
    assert_true(tl_address_from((const struct sockaddr *)(const void *)&v6, &one));
    assert_memory_equal(&one, &expected, sizeof(one));
    assert_false(tl_address_from(&local, &one));
}

static void loopback_is_known(void **state)
{
    (void)state;
    static const char *const own[] = {"127.0.0.1", "127.8.9.10", "::1", "::ffff:127.0.0.1"};
    static const char *const others[] = {"128.0.0.1", "10.0.0.127",  "::2",
                                         "::",        "2001:db8::1", "7f00::1"};
    for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
        const struct tl_address one = address(own[i]);
        assert_true(tl_address_is_loopback(&one));
    }
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        const struct tl_address one = address(others[i]);
        assert_false(tl_address_is_loopback(&one));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_spelling_gives_one_form),
        cmocka_unit_test(what_is_no_address_is_refused),
        cmocka_unit_test(sockets_have_the_same_form),
        cmocka_unit_test(loopback_is_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
