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

#include "worker/page/zone.h"

#define NOW INT64_C(1796122800) /* 1 Dec 2026, 11:00 UTC */

static struct tl_zone *load(const char *name)
{
    struct tl_error err = {0};
    struct tl_zone *zone = tl_zone_load(name, &err);
    if (zone == NULL)
        fail_msg("%s", err.text);
    return zone;
}

static void reads(const struct tl_zone *zone, int64_t unix_s, const char *expected)
{
    struct tm tm;
    char text[64];
    const char *label = tl_zone_time(zone, unix_s, &tm);
    assert_non_null(label);
    snprintf(text, sizeof(text), "%d-%d %02d:%02d:%02d %s", tm.tm_mon + 1, tm.tm_mday, tm.tm_hour,
             tm.tm_min, tm.tm_sec, label);
    assert_string_equal(text, expected);
}

static void a_zone_without_summer_time(void **state)
{
    (void)state;
    struct tl_zone *zone = load("Asia/Seoul");
    reads(zone, NOW, "12-1 20:00:00 KST");
    reads(zone, INT64_C(2840140799), "1-1 08:59:59 KST");
    reads(zone, INT64_C(2840140800), "1-1 00:00:00 UTC"); /* not known any more */
    reads(zone, INT64_C(1577836800), "1-1 09:00:00 KST");
    reads(zone, INT64_C(1577836799), "12-31 23:59:59 UTC");
    tl_zone_free(&zone);
    assert_null(zone);
    reads(NULL, NOW, "12-1 11:00:00 UTC");
}

/* At the very second, and also far ahead, where files tell a rule only. */
static void summer_time_begins_and_ends(void **state)
{
    (void)state;
    struct tl_zone *zone = load("Europe/Berlin");
    reads(zone, INT64_C(1806195599), "3-28 01:59:59 CET"); /* 2027 */
    reads(zone, INT64_C(1806195600), "3-28 03:00:00 CEST");
    reads(zone, INT64_C(1824944399), "10-31 02:59:59 CEST");
    reads(zone, INT64_C(1824944400), "10-31 02:00:00 CET");
    reads(zone, INT64_C(2413760400), "6-28 03:00:00 CEST");  /* 2046 */
    reads(zone, INT64_C(2834000000), "10-22 00:13:20 CEST"); /* 2059 */
    tl_zone_free(&zone);
    zone = load("Australia/Lord_Howe"); /* by half an hour */
    reads(zone, NOW, "12-1 22:00:00 UTC+11");
    tl_zone_free(&zone);
    zone = load("America/St_Johns");
    reads(zone, NOW, "12-1 07:30:00 NST");
    tl_zone_free(&zone);
}

/* The zone of the process, which others see, stays as it is. */
static void the_process_keeps_its_zone(void **state)
{
    (void)state;
    const time_t now = NOW;
    struct tm tm;
    assert_int_equal(setenv("TZ", "UTC", 1), 0);
    tzset();
    struct tl_zone *zone = load("Asia/Seoul");
    assert_string_equal(getenv("TZ"), "UTC");
    assert_non_null(localtime_r(&now, &tm));
    assert_int_equal(tm.tm_hour, 11);
    tl_zone_free(&zone);
}

static void others_are_refused(void **state)
{
    (void)state;
    static const char *const names[] = {
        "Asia/Soul",    "",     "/Asia/Seoul", "../zoneinfo/Asia/Seoul", "Asia/Seoul/", "KST-9:00",
        "zone1970.tab", "Asia", "Asia/Seoul\n"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct tl_error err = {0};
        assert_null(tl_zone_load(names[i], &err));
        assert_int_equal(strncmp(err.text, "timezone: ", 10), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_zone_without_summer_time),
        cmocka_unit_test(summer_time_begins_and_ends),
        cmocka_unit_test(the_process_keeps_its_zone),
        cmocka_unit_test(others_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
