/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ctl/calls/calls.h"

static json_t *parse(const char *text)
{
    json_t *stats = json_loads(text, 0, NULL);
    assert_non_null(stats);
    return stats;
}

static void test_limits(void **state)
{
    (void)state;
    static const struct {
        const char *stats, *limit;
    } rows[] = {
        {"{\"capacity_now\": 300, \"feedback\": null, \"rate\": null}", "300"},
        {"{\"capacity_now\": 0}", "0: no one"},
        {"{\"capacity_now\": 140, \"feedback\": true}", "140 auto"},
        {"{\"capacity_now\": 120, \"feedback\": false}", "120 auto (no feedback)"},
        {"{\"capacity_now\": null, \"rate\": {\"admit\": 5, \"every_ms\": 1000}}", "5/1s"},
        {"{\"capacity_now\": 9, \"rate\": {\"admit\": 5, \"every_ms\": 1000}}", "9, 5/1s"},
        {"{}", ""},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct tl_text text = {0};
        json_t *stats = parse(rows[i].stats);
        tl_row_limit(stats, &text);
        assert_string_equal(tl_xtext(&text), rows[i].limit);
        tl_text_free(&text);
        json_decref(stats);
    }
}

static void assert_state(const char *text, const char *phase, const char *word)
{
    struct tl_text shown = {0};
    json_t *stats = parse(text);
    tl_row_phase(stats, &shown);
    assert_string_equal(tl_xtext(&shown), phase);
    tl_text_free(&shown);
    assert_string_equal(tl_row_state(stats), word);
    json_decref(stats);
}

static void test_states(void **state)
{
    (void)state;
    assert_int_equal(setenv("TZ", "UTC0", 1), 0);
    assert_state("{\"mode\": \"open\", \"phase\": \"full\", \"recovery\": null}", "full", "full");
    assert_state("{\"mode\": \"paused\", \"phase\": \"open\"}", "open", "paused");
    assert_state("{\"mode\": \"open\", \"phase\": \"scheduled\", \"opens_at\": "
                 "\"2026-12-01T11:00:00Z\"}",
                 "opens 2026-12-01T11:00:00Z", "scheduled");
    assert_state("{\"mode\": \"paused\", \"phase\": \"recovering\", \"at\": "
                 "\"2026-12-01T11:00:00Z\", \"recovery\": {\"until\": "
                 "\"2026-12-01T11:00:11.500Z\", \"restored\": 8, \"lost\": 10}}",
                 "recovers 12 s: 8 of 10", "recovering");
    assert_state("{\"mode\": \"open\", \"phase\": \"open\", \"trouble\": \"it is gone\"}",
                 "damaged", "damaged");
    assert_state("{\"queue\": \"sale\", \"away\": true, \"trouble\": \"it cannot be reached\"}",
                 "away", "away");
}

static void test_what_is_not_known_is_a_dash(void **state)
{
    (void)state;
    char text[64];
    json_t *stats =
        parse("{\"oldest_wait_ms\": null, \"per_minute\": null, \"totals\": {\"left\": 2,"
              " \"absent\": 3}}");
    tl_json_wait(stats, "oldest_wait_ms", text, sizeof(text));
    assert_string_equal(text, "-");
    tl_row_per_minute(stats, "admitted", text, sizeof(text));
    assert_string_equal(text, "-");
    json_decref(stats);
    stats = parse("{\"oldest_wait_ms\": 61000, \"per_minute\": {\"admitted\": 12.6}}");
    tl_json_wait(stats, "oldest_wait_ms", text, sizeof(text));
    assert_string_equal(text, "61 s");
    tl_row_per_minute(stats, "admitted", text, sizeof(text));
    assert_string_equal(text, "13");
    json_decref(stats);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_states),
        cmocka_unit_test(test_what_is_not_known_is_a_dash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
