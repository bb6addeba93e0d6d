/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "ctl/calls/calls.h"

static void assert_written(const char *signs, const char *expected)
{
    struct tl_text out = {0};
    json_t *stats = json_pack("{s:s, s:o}", "queue", "bank", "signs", json_loads(signs, 0, NULL));
    assert_non_null(stats);
    tl_row_signs(stats, &out);
    assert_false(out.failed);
    assert_string_equal(out.data != NULL ? out.data : "", expected);
    tl_text_free(&out);
    json_decref(stats);
}

static void nothing_is_said_of_what_is_normal(void **state)
{
    (void)state;
    assert_written("{\"checks_failed\": 500, \"sessions_shared\": 0, \"sessions_fast\": 0,"
                   " \"joins\": {\"192.0.2.7\": 60}, \"failures\": {\"192.0.2.7\": 60}}",
                   "");
}

static void signs_are_named(void **state)
{
    (void)state;
    assert_written("{\"checks_failed\": 500, \"joins\": {\"192.0.2.7\": 61}}",
                   "! bank: 61 joins from 192.0.2.7, 500 failed checks in all\n");
    assert_written("{\"sessions_shared\": 1}", "! bank: 1 shared sessions\n");
    assert_written("{\"failures\": {\"2001:db8::/56\": 99}, \"sessions_fast\": 2}",
                   "! bank: 99 failed checks from 2001:db8::/56, 2 fast sessions\n");
}

/* A key of a wrong type. */
static void what_cannot_be_read_is_said(void **state)
{
    struct tl_text out = {0};
    json_t *stats = json_pack("{s:s, s:n}", "queue", "bank", "signs");
    (void)state;
    tl_row_signs(stats, &out);
    assert_non_null(strstr(out.data, "! bank: ") != NULL ? strstr(out.data, "audit") : NULL);
    tl_text_free(&out);
    json_decref(stats);
}

static void no_line_is_longer_than_a_screen(void **state)
{
    struct tl_text out = {0};
    json_t *networks = json_object();
    char queue[64], network[64];
    size_t lines = 0;
    (void)state;
    memset(queue, 'q', sizeof(queue) - 1);
    queue[sizeof(queue) - 1] = '\0';
    for (json_int_t i = 0; i < 3; i++) {
        snprintf(network, sizeof(network), "1111:2222:3333:444%d::/56", (int)i);
        (void)json_object_set_new(networks, network, json_integer(1000000 + i));
    }
    json_t *stats = json_pack("{s:s, s:{s:i, s:i, s:i, s:O, s:o}}", "queue", queue, "signs",
                              "checks_failed", 12345678, "sessions_shared", 12345678,
                              "sessions_fast", 12345678, "joins", networks, "failures", networks);
    tl_row_signs(stats, &out);
    assert_false(out.failed);
    for (const char *line = out.data; *line != '\0'; lines++) {
        size_t length = strcspn(line, "\n");
        assert_in_range(length, 1, TL_CTL_SIGNS_COLUMNS);
        line += length + 1;
    }
    assert_in_range(lines, 5, 10);
    tl_text_free(&out);
    json_decref(stats);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_said_of_what_is_normal),
        cmocka_unit_test(signs_are_named),
        cmocka_unit_test(what_cannot_be_read_is_said),
        cmocka_unit_test(no_line_is_longer_than_a_screen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
