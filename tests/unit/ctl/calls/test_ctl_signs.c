/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "ctl/calls/calls.h"

static void add(struct tl_sign_networks *networks, const char *text, uint64_t count)
{
    struct tl_prefix prefix;
    assert_true(tl_prefix_parse(text, &prefix, NULL));
    tl_sign_networks_add(networks, &prefix, count);
}

static void assert_written(const char *queue, const struct tl_signs *signs, const char *expected)
{
    struct tl_text out = {0};
    tl_ctl_signs_write(queue, signs, &out);
    assert_false(out.failed);
    assert_string_equal(out.data != NULL ? out.data : "", expected);
    tl_text_free(&out);
}

static void nothing_is_said_of_what_is_normal(void **state)
{
    struct tl_signs signs = {.failed = 500};
    (void)state;
    add(&signs.joins, "192.0.2.7", 60);
    add(&signs.failures, "192.0.2.7", 60);
    assert_written("bank", &signs, "");
}

static void signs_are_named(void **state)
{
    struct tl_signs signs = {.failed = 500};
    (void)state;
    add(&signs.joins, "192.0.2.7", 61);
    assert_written("bank", &signs, "! bank: 61 joins from 192.0.2.7, 500 failed checks in all\n");
    assert_written("bank", &(struct tl_signs){.shared = 1}, "! bank: 1 shared sessions\n");
}

static void no_line_is_longer_than_a_screen(void **state)
{
    struct tl_signs signs = {.failed = 12345678, .shared = 12345678, .fast = 12345678};
    struct tl_text out = {0};
    char queue[64];
    size_t lines = 0;
    (void)state;
    memset(queue, 'q', sizeof(queue) - 1);
    queue[sizeof(queue) - 1] = '\0';
    for (size_t i = 0; i < TL_SIGNS_NETWORKS; i++) {
        add(&signs.joins, "1111:2222:3333:4444::/56", 1000000 + i);
        add(&signs.failures, "1111:2222:3333:4444::/56", 1000000 + i);
    }
    tl_ctl_signs_write(queue, &signs, &out);
    assert_false(out.failed);
    for (const char *line = out.data; *line != '\0'; lines++) {
        size_t length = strcspn(line, "\n");
        assert_in_range(length, 1, TL_CTL_SIGNS_COLUMNS);
        line += length + 1;
    }
    assert_in_range(lines, 5, 10);
    tl_text_free(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_said_of_what_is_normal),
        cmocka_unit_test(signs_are_named),
        cmocka_unit_test(no_line_is_longer_than_a_screen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
