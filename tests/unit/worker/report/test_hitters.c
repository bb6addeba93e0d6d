/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "worker/report/queue_counts.h"

static struct tl_prefix prefix(unsigned n)
{
    char text[32];
    struct tl_prefix result;
    snprintf(text, sizeof(text), "10.%u.%u.%u", n >> 16, (n >> 8) & 255, n & 255);
    assert_true(tl_prefix_parse(text, &result, NULL));
    return result;
}

static uint32_t add(struct tl_hitters *hitters, unsigned n, uint32_t stream, int64_t now_ms)
{
    struct tl_prefix from = prefix(n);
    return tl_hitters_add(hitters, &from, stream, now_ms);
}

static void streams_and_networks_count_on_their_own(void **state)
{
    struct tl_hitters hitters = {0};
    (void)state;
    for (uint32_t i = 1; i <= 50; i++) {
        assert_int_equal(add(&hitters, 1, 7, 1000), i);
        assert_int_equal(add(&hitters, 1, 8, 1000), i);
        assert_int_equal(add(&hitters, 2, 7, 1000), i);
    }
    assert_int_equal(hitters.total, 150);
}

/* One network among a hundred thousand others, each of which comes once: what is said of it is
 * never too much, and nearly all that it sent. */
static void a_frequent_network_is_found_among_many(void **state)
{
    struct tl_hitters hitters = {0};
    uint32_t counted = 0, sent = 0;
    (void)state;
    for (unsigned n = 0; n < 100000; n++) {
        assert_int_equal(add(&hitters, 1000 + n, 1, 5000), 1);
        if (n % 4 != 0)
            continue;
        sent++;
        counted = add(&hitters, 1, 1, 5000);
        assert_true(counted <= sent);
    }
    assert_true(counted > sent / 2);
}

static void each_minute_counts_from_zero(void **state)
{
    struct tl_hitters hitters = {0};
    (void)state;
    assert_int_equal(add(&hitters, 1, 1, 100000), 1);
    assert_int_equal(add(&hitters, 1, 1, 159999), 2);
    assert_int_equal(add(&hitters, 1, 1, 160000), 1);
    assert_int_equal(hitters.total, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(streams_and_networks_count_on_their_own),
        cmocka_unit_test(a_frequent_network_is_found_among_many),
        cmocka_unit_test(each_minute_counts_from_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
