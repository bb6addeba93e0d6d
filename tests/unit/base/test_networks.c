/* Addresses and networks, and the limit of joins per address. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/networks.h"
#include "worker/http/limiter.h"

static struct tl_address address(const char *text)
{
    struct tl_address result;
    if (!tl_address_parse(text, &result))
        fail_msg("not taken for an address: %s", text);
    return result;
}

static bool contains(const char *networks, const char *text)
{
    struct tl_error err = {0};
    struct tl_networks *set = tl_networks_parse(networks, &err);
    if (set == NULL)
        fail_msg("%s", err.text);
    struct tl_address one = address(text);
    bool result = tl_networks_contain(set, &one);
    tl_networks_free(&set);
    return result;
}

static void networks_hold_their_addresses_only(void **state)
{
    (void)state;
    assert_true(contains("10.0.0.0/8", "10.255.0.1"));
    assert_false(contains("10.0.0.0/8", "11.0.0.1"));
    assert_true(contains("192.168.1.128/25", "192.168.1.200"));
    assert_false(contains("192.168.1.128/25", "192.168.1.100"));
    assert_true(contains("127.0.0.1 ::1", "[::1]:8080"));
    assert_true(contains("127.0.0.1", "::ffff:127.0.0.1"));
    assert_true(contains("127.0.0.1", "127.0.0.1:5555"));
    assert_true(contains("fd00::/8", "fdab::1"));
    assert_false(contains("fd00::/8", "10.0.0.1"));
    assert_true(contains("0.0.0.0/0", "8.8.8.8"));
    assert_false(contains("0.0.0.0/0", "2001:db8::1"));
    assert_false(contains("", "127.0.0.1"));
}

static void what_is_no_address_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"",        "localhost", "1.2.3",  "1.2.3.4.5",
                                      "unknown", "[::1",      "[::1]x", "1.2.3.4:5:6"};
    struct tl_address one;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        if (tl_address_parse(bad[i], &one))
            fail_msg("taken for an address: %s", bad[i]);
    static const char *const networks[] = {"10.0.0.0/33", "::1/129",     "10.0.0.0/",
                                           "10.0.0.0/x",  "10.0.0.0/-1", "host"};
    for (size_t i = 0; i < sizeof(networks) / sizeof(networks[0]); i++) {
        struct tl_error err = {0};
        struct tl_networks *set = tl_networks_parse(networks[i], &err);
        if (set != NULL)
            fail_msg("taken for a network: %s", networks[i]);
        assert_int_equal(err.kind, TL_ERR_INVALID);
    }
}

static void the_limit_is_per_address_and_minute(void **state)
{
    (void)state;
    struct tl_limiter *limiter = tl_limiter_new(3);
    struct tl_address anna = address("192.0.2.1"), bert = address("192.0.2.2");
    for (int minute = 0; minute < 3; minute++) {
        int64_t now = minute * 60000 + 5;
        for (int i = 0; i < 3; i++)
            assert_true(tl_limiter_allow(limiter, &anna, now + i));
        assert_false(tl_limiter_allow(limiter, &anna, now + 59000));
        assert_true(tl_limiter_allow(limiter, &bert, now + 59000));
    }
    tl_limiter_free(&limiter);
}

static void without_a_limit_everybody_passes(void **state)
{
    (void)state;
    struct tl_limiter *limiter = tl_limiter_new(0);
    struct tl_address anna = address("192.0.2.1");
    for (int i = 0; i < 1000; i++)
        assert_true(tl_limiter_allow(limiter, &anna, 0));
    tl_limiter_free(&limiter);
}

static void an_ipv6_customer_is_a_64(void **state)
{
    (void)state;
    struct tl_limiter *limiter = tl_limiter_new(1);
    struct tl_address one = address("2001:db8:0:1::1"), other = address("2001:db8:0:1:ffff::2");
    struct tl_address neighbour = address("2001:db8:0:2::1");
    one = tl_address_site(&one);
    other = tl_address_site(&other);
    neighbour = tl_address_site(&neighbour);
    assert_true(tl_limiter_allow(limiter, &one, 0));
    assert_false(tl_limiter_allow(limiter, &other, 0));
    assert_true(tl_limiter_allow(limiter, &neighbour, 0));
    tl_limiter_free(&limiter);
}

/* More addresses than are counted: nobody new is turned away, nobody known gets more. */
static void a_flood_of_addresses_is_bounded(void **state)
{
    (void)state;
    struct tl_limiter *limiter = tl_limiter_new(1);
    struct tl_address one = address("10.0.0.0");
    for (uint32_t i = 0; i < 200000; i++) {
        for (size_t k = 0; k < 4; k++)
            one.bytes[12 + k] = (unsigned char)(i >> (24 - 8 * k));
        assert_true(tl_limiter_allow(limiter, &one, 0));
    }
    for (size_t k = 12; k < 16; k++)
        one.bytes[k] = 0;
    assert_false(tl_limiter_allow(limiter, &one, 0));
    tl_limiter_free(&limiter);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(networks_hold_their_addresses_only),
        cmocka_unit_test(what_is_no_address_is_refused),
        cmocka_unit_test(the_limit_is_per_address_and_minute),
        cmocka_unit_test(without_a_limit_everybody_passes),
        cmocka_unit_test(an_ipv6_customer_is_a_64),
        cmocka_unit_test(a_flood_of_addresses_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
