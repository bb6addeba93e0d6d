/* SPDX-License-Identifier: Apache-2.0 */
/* What is read of a probed site's answer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "admitter/reading.h"

struct reading {
    const char *text, *value;
    double number; /* -1: refused */
};

static void assert_readings(enum tl_probe_format format, const struct reading *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct tl_error err = {0};
        double number = -1;
        bool ok = tl_reading_take(format, list[i].text, strlen(list[i].text), list[i].value,
                                  &number, &err);
        if (ok != (list[i].number >= 0) || (ok && number != list[i].number))
            fail_msg("\"%s\" in %s is %f", list[i].value, list[i].text, number);
        assert_int_equal(err.text[0] == '\0', ok);
    }
}

static void a_path_leads_to_a_number_of_json(void **state)
{
    (void)state;
    static const struct reading list[] = {
        {"{\"load\": 0.75}", "load", 0.75},
        {"{\"a\": {\"b\": {\"c\": 3}}}", "a.b.c", 3},
        {"{\"pools\": [{\"used\": 1}, {\"used\": 2}]}", "pools.1.used", 2},
        {"[5, 6]", "0", 5},
        {"{\"load\": 0}", "load", 0},
        {"{\"load\": \"0.75\"}", "load", -1},
        {"{\"load\": true}", "load", -1},
        {"{\"load\": null}", "load", -1},
        {"{\"load\": -0.1}", "load", -1},
        {"{\"load\": 0.75}", "a", -1},
        {"{\"load\": 0.75}", "load.a", -1},
        {"{\"load\": 0.75}", "", -1},
        {"[5, 6]", "2", -1},
        {"[5, 6]", "-1", -1},
        {"[5, 6]", "1x", -1},
        {"[5, 6]", "99999999999999999999999", -1},
        {"<html>", "load", -1},
        {"", "load", -1},
        {"{\"load\": 1e999}", "load", -1},
    };
    assert_readings(TL_PROBE_JSON, list, sizeof(list) / sizeof(list[0]));
}

#define PAGE                                                                                       \
    "# HELP busy Workers that are busy\n"                                                          \
    "# TYPE busy gauge\n"                                                                          \
    "busy{pool=\"a\"} 3\n"                                                                         \
    "busy{pool=\"b } 9\\\" 7\",x=\"y\"} 4 1700000000000\n"                                         \
    "busy_total 100\n"                                                                             \
    "load 0.5\r\n"                                                                                 \
    "wrong NaN\n"                                                                                  \
    "endless +Inf\n"                                                                               \
    "text abc\n"                                                                                   \
    "below -1\n"                                                                                   \
    "nothing\n"                                                                                    \
    "last 1e2"

static void a_metric_is_the_sum_of_its_series(void **state)
{
    (void)state;
    static const struct reading list[] = {
        {PAGE, "busy", 7},
        {PAGE, "busy{pool=\"a\"}", 3},
        {PAGE, "busy{pool=\"b } 9\\\" 7\",x=\"y\"}", 4},
        {PAGE, "busy_total", 100},
        {PAGE, "load", 0.5},
        {PAGE, "last", 100},
        {PAGE, "bus", -1},
        {PAGE, "busy{pool=\"c\"}", -1},
        {PAGE, "wrong", -1},
        {PAGE, "endless", -1},
        {PAGE, "text", -1},
        {PAGE, "below", -1},
        {PAGE, "nothing", -1},
        {PAGE, "#", -1},
        {PAGE, "", -1},
        {"", "busy", -1},
        {"\n\n", "busy", -1},
        {"busy{pool=\"a", "busy", -1},
        {"{\"load\": 1}", "load", -1},
    };
    assert_readings(TL_PROBE_PROMETHEUS, list, sizeof(list) / sizeof(list[0]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_path_leads_to_a_number_of_json),
        cmocka_unit_test(a_metric_is_the_sum_of_its_series),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
