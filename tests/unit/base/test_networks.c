/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses and networks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/net.h"

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

static bool overlaps(const char *networks, const char *text)
{
    struct tl_error err = {0};
    struct tl_prefix prefix;
    struct tl_networks *set = tl_networks_parse(networks, &err);
    if (set == NULL || !tl_prefix_parse(text, &prefix, &err))
        fail_msg("%s", err.text);
    bool result = tl_networks_overlap(set, &prefix);
    tl_networks_free(&set);
    return result;
}

static void networks_overlap_where_one_holds_the_other(void **state)
{
    (void)state;
    assert_true(overlaps("10.0.0.0/8", "10.1.2.3"));
    assert_true(overlaps("127.0.0.1 10.1.2.3", "10.0.0.0/8"));
    assert_true(overlaps("10.0.0.0/8", "10.0.0.0/8"));
    assert_false(overlaps("10.0.0.0/8", "11.0.0.0/8"));
    assert_false(overlaps("10.1.0.0/16", "10.2.0.0/16"));
    assert_false(overlaps("10.0.0.0/8", "fd00::/8"));
    assert_false(overlaps("", "0.0.0.0/0"));
}

static void what_is_no_network_is_refused(void **state)
{
    (void)state;
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(networks_hold_their_addresses_only),
        cmocka_unit_test(networks_overlap_where_one_holds_the_other),
        cmocka_unit_test(what_is_no_network_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
