/* SPDX-License-Identifier: Apache-2.0 */
/* The text of an entry of tl:{q}:signs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/store/signs.h"

static struct tl_prefix prefix(const char *text)
{
    struct tl_prefix result;
    assert_true(tl_prefix_parse(text, &result, NULL));
    return result;
}

static void add(struct tl_sign_networks *networks, const char *text, uint64_t count)
{
    const struct tl_prefix network = prefix(text);
    tl_sign_networks_add(networks, &network, count);
}

static void the_networks_with_most_are_kept(void **state)
{
    struct tl_sign_networks networks = {0};
    (void)state;
    add(&networks, "192.0.2.1", 5);
    add(&networks, "192.0.2.2", 9);
    add(&networks, "192.0.2.3", 1);
    add(&networks, "192.0.2.4", 7);
    add(&networks, "192.0.2.5", 1);
    assert_int_equal(networks.n, TL_SIGNS_NETWORKS);
    assert_int_equal(networks.list[0].count, 9);
    assert_int_equal(networks.list[1].count, 7);
    assert_int_equal(networks.list[2].count, 5);
    const struct tl_prefix second = prefix("192.0.2.4");
    assert_true(tl_prefix_equal(&networks.list[1].prefix, &second));
}

static void an_entry_is_a_text(void **state)
{
    struct tl_signs signs = {.failed = 120, .shared = 2, .fast = 1};
    char text[TL_SIGNS_TEXT_MAX];
    (void)state;
    add(&signs.joins, "192.0.2.7", 77);
    add(&signs.joins, "2001:db8:0:100::/56", 20);
    add(&signs.failures, "192.0.2.7", 65);
    tl_signs_format(&signs, text);
    assert_string_equal(
        text, "120 2 1 joins 192.0.2.7 77 joins 2001:db8:0:100::/56 20 failed 192.0.2.7 65");
}

static void the_longest_text_fits(void **state)
{
    struct tl_signs signs = {.failed = UINT64_MAX, .shared = UINT64_MAX, .fast = UINT64_MAX};
    char text[TL_SIGNS_TEXT_MAX];
    (void)state;
    for (size_t i = 0; i < TL_SIGNS_NETWORKS; i++) {
        add(&signs.joins, "1111:2222:3333:4444:5555:6666:7777:8888/127", UINT64_MAX);
        add(&signs.failures, "1111:2222:3333:4444:5555:6666:7777:8888/127", UINT64_MAX);
    }
    tl_signs_format(&signs, text);
    assert_non_null(strstr(text, "18446744073709551615 failed"));
    assert_string_equal(text + strlen(text) - 20, "18446744073709551615");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_networks_with_most_are_kept),
        cmocka_unit_test(an_entry_is_a_text),
        cmocka_unit_test(the_longest_text_fits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
