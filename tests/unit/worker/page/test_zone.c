/* SPDX-License-Identifier: Apache-2.0 */
/* Time zones: needs tzdata. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "worker/page/page_text.h"

#define NOW INT64_C(1796122800) /* 1 Dec 2026, 11:00 UTC */

static void set(const char *name)
{
    struct tl_error err = {0};
    if (!tl_zone_check(name, &err) || !tl_zone_set(name, &err))
        fail_msg("%s", err.text);
}

static void reads(bool in_zone, int64_t unix_s, const char *expected)
{
    static const struct tl_catalogue language = {.date = "{month}-{day} UTC"};
    char date[32];
    char clock[32];
    char text[80];
    tl_write_time(unix_s * 1000, &language, in_zone, date, sizeof(date));
    tl_write_clock(unix_s * 1000, in_zone, clock, sizeof(clock));
    assert_string_equal(strchr(date, ' '), strchr(clock, ' ')); /* the zone */
    snprintf(text, sizeof(text), "%.*s %s", (int)strcspn(date, " "), date, clock);
    assert_string_equal(text, expected);
}

static void a_zone_without_summer_time(void **state)
{
    (void)state;
    set("Asia/Seoul");
    reads(true, NOW, "12-1 20:00:00 KST");
    reads(true, INT64_C(2840140799), "1-1 08:59:59 KST");
    reads(true, INT64_C(2840140800), "1-1 09:00:00 KST"); /* 2060 */
    reads(true, INT64_C(1577836800), "1-1 09:00:00 KST"); /* 2020 */
    reads(true, INT64_C(1577836799), "1-1 08:59:59 KST");
    reads(false, NOW, "12-1 11:00:00 UTC");
}

/* At the very second, and also far ahead, where files tell a rule only. */
static void summer_time_begins_and_ends(void **state)
{
    (void)state;
    set("Europe/Berlin");
    reads(true, INT64_C(1806195599), "3-28 01:59:59 CET"); /* 2027 */
    reads(true, INT64_C(1806195600), "3-28 03:00:00 CEST");
    reads(true, INT64_C(1824944399), "10-31 02:59:59 CEST");
    reads(true, INT64_C(1824944400), "10-31 02:00:00 CET");
    reads(true, INT64_C(2413760400), "6-28 03:00:00 CEST");  /* 2046 */
    reads(true, INT64_C(2834000000), "10-22 00:13:20 CEST"); /* 2059 */
    set("Australia/Lord_Howe");                              /* by half an hour */
    reads(true, NOW, "12-1 22:00:00 UTC+11");
    set("America/St_Johns");
    reads(true, NOW, "12-1 07:30:00 NST");
}

/* Without a zone of its own the process keeps the one it has, and pages are in UTC. */
static void no_zone_is_utc(void **state)
{
    (void)state;
    const time_t now = NOW;
    struct tm tm;
    set("Asia/Seoul");
    assert_true(tl_zone_set("", NULL));
    assert_non_null(localtime_r(&now, &tm));
    assert_int_equal(tm.tm_hour, 20);
    reads(false, NOW, "12-1 11:00:00 UTC");
}

/* To check a name changes nothing. */
static void others_are_refused(void **state)
{
    (void)state;
    static const char *const names[] = {
        "Asia/Soul",    "",     "/Asia/Seoul", "../zoneinfo/Asia/Seoul", "Asia/Seoul/", "KST-9:00",
        "zone1970.tab", "Asia", "Asia/Seoul\n"};
    assert_int_equal(setenv("TZ", "UTC", 1), 0);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct tl_error err = {0};
        assert_false(tl_zone_check(names[i], &err));
        assert_int_equal(strncmp(err.text, "timezone: ", 10), 0);
        assert_true(names[i][0] == '\0' || !tl_zone_set(names[i], NULL));
    }
    assert_true(tl_zone_check("Asia/Seoul", NULL));
    assert_string_equal(getenv("TZ"), "UTC");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_zone_without_summer_time),
        cmocka_unit_test(summer_time_begins_and_ends),
        cmocka_unit_test(no_zone_is_utc),
        cmocka_unit_test(others_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
