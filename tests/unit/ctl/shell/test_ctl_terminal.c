/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <time.h>

#include "ctl/shell/shell.h"

static const char *local(const char *zone, const char *utc)
{
    static char text[64];
    assert_int_equal(setenv("TZ", zone, 1), 0);
    tzset();
    tl_terminal_time_of(utc, text, sizeof(text));
    return text;
}

static void test_times_are_local_with_their_offset(void **state)
{
    (void)state;
    assert_string_equal(local("UTC0", "2026-12-01T11:00:00Z"), "2026-12-01T11:00:00Z");
    assert_string_equal(local("KST-9", "2026-12-01T11:00:00.250Z"), "2026-12-01T20:00:00+09:00");
    assert_string_equal(local("NST3:30", "2026-12-01T02:00:00Z"), "2026-11-30T22:30:00-03:30");
    assert_string_equal(local("KST-9", "10m"), "10m");
    assert_string_equal(local("KST-9", ""), "");
}

static void test_lengths_of_time(void **state)
{
    (void)state;
    static const struct {
        int64_t ms;
        const char *text;
    } rows[] = {{0, "0 s"},
                {499, "0 s"},
                {99499, "99 s"},
                {99500, "2 min"},
                {5940000, "99 min"},
                {6000000, "1 h 40 min"},
                {86400000, "24 h 0 min"}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char text[40];
        tl_terminal_duration(rows[i].ms, text, sizeof(text));
        assert_string_equal(text, rows[i].text);
    }
}

static void assert_progress(uint64_t done, uint64_t total, int64_t now_ms, int columns,
                            const char *expected)
{
    const struct tl_progress progress = {.what = "export", .begun_ms = 1000};
    char text[200];
    tl_progress_text(&progress, done, total, now_ms, columns, text, sizeof(text));
    assert_string_equal(text, expected);
}

static void test_progress(void **state)
{
    (void)state;
    assert_progress(0, 100, 1000, 79, "export [........................]   0 %  0 of 100");
    assert_progress(50, 100, 1500, 79, "export [############............]  50 %  50 of 100");
    assert_progress(50, 100, 6000, 79,
                    "export [############............]  50 %  50 of 100, 5 s left");
    assert_progress(130, 100, 6000, 79,
                    "export [########################] 100 %  130 of 130, 0 s left");
    assert_progress(7, 0, 6000, 79, "export  7");
    assert_progress(50, 100, 6000, 20, "export [############");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_times_are_local_with_their_offset),
        cmocka_unit_test(test_lengths_of_time),
        cmocka_unit_test(test_progress),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
