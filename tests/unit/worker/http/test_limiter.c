/* The limit of joins per address. */
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

/* More addresses than are counted: new ones are not turned away, known ones get no more. */
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
        cmocka_unit_test(the_limit_is_per_address_and_minute),
        cmocka_unit_test(without_a_limit_everybody_passes),
        cmocka_unit_test(an_ipv6_customer_is_a_64),
        cmocka_unit_test(a_flood_of_addresses_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
