/* SPDX-License-Identifier: Apache-2.0 */
/* Arrivals for `tellerline plan`: the CSV, and crowds that are drawn. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lab/crowd.h"

static void assert_near(double found, double expected, double distance)
{
    if (!(found >= expected - distance && found <= expected + distance))
        fail_msg("%f is not %f", found, expected);
}

static void assert_read(const char *text, size_t n, const int64_t at_ms[],
                        const int64_t session_ms[])
{
    struct tl_arrivals arrivals;
    struct tl_error err = {0};
    char *bytes = strdup(text);
    assert_non_null(bytes);
    if (!tl_arrivals_parse("a.csv", bytes, strlen(text), &arrivals, &err))
        fail_msg("%s", err.text);
    free(bytes);
    assert_int_equal(arrivals.n, n);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(arrivals.list[i].at_ms, at_ms[i]);
        assert_int_equal(arrivals.list[i].session_ms, session_ms[i]);
    }
    tl_arrivals_free(&arrivals);
    tl_arrivals_free(&arrivals);
}

static void test_good(void **state)
{
    (void)state;
    assert_read("1\n2.5\n.5", 3, (int64_t[]){0, 500, 2000}, (int64_t[]){-1, -1, -1});
    assert_read("9:05:00,245\r\n9:04:59.25,0:04:05\r\n\r\n", 2, (int64_t[]){0, 750},
                (int64_t[]){245000, 245000});
    assert_read("\xEF\xBB\xBF"
                "name,session,arrival\n\"a, \"\"b\"\"\",7, \"10\" \nc,,12\n",
                2, (int64_t[]){0, 2000}, (int64_t[]){7000, -1});
    assert_read("arrival,other\n2026-12-01T20:00:01+09:00,x\n2026-12-01T11:00:00Z,y\n", 2,
                (int64_t[]){0, 1000}, (int64_t[]){-1, -1});
    assert_read("5,\n5,1\n5,2,3,4\n", 3, (int64_t[]){0, 0, 0}, (int64_t[]){-1, 1000, 2000});
    assert_read("23:59\n24:10\n", 2, (int64_t[]){0, 660000}, (int64_t[]){-1, -1});
}

static void assert_refused(const char *bytes, size_t length, const char *part)
{
    struct tl_arrivals arrivals;
    struct tl_error err = {0};
    char *copy = calloc(1, length + 1);
    assert_non_null(copy);
    memcpy(copy, bytes, length);
    assert_false(tl_arrivals_parse("a.csv", copy, length, &arrivals, &err));
    free(copy);
    assert_int_equal(err.kind, TL_ERR_INVALID);
    if (strstr(err.text, part) == NULL)
        fail_msg("no \"%s\" in \"%s\"", part, err.text);
    assert_null(arrivals.list);
}

static void test_bad(void **state)
{
    (void)state;
    static const struct {
        const char *text, *part;
    } rows[] = {
        {"", "a.csv:1: there is no arrival"},
        {"\n\n", "a.csv:2: there is no arrival"},
        {",5\n", "a.csv:1: \"\" is not a time"},
        {"\"1\"\"2\"\n", "a.csv:1: \"1\"2\" is not a time"},
        {"arrival\n", "a.csv:1: there is no arrival"},
        {"1\n2\nx\n", "a.csv:3: \"x\" is not a time"},
        {"1\n\n-2\n", "a.csv:3: \"-2\" is not a time"},
        {"1e5\n", "a.csv:1: \"1e5\" is not a time"},
        {"inf\n", "names a column \"arrival\""},
        {"1\n9:05:00\n",
         "a.csv:2: \"9:05:00\" is a time of day, but the lines before have seconds"},
        {"9:65:00\n", "is not a time"},
        {"9:05:61\n", "is not a time"},
        {"123:05:00\n", "is not a time"},
        {"9:05:00x\n", "is not a time"},
        {"1,2\n2,-1\n", "a.csv:2: \"-1\" is not a session"},
        {"1,700000\n", "longer than 7 days"},
        {"vru+line,date\nAA,1\n", "a.csv:1: the first line is neither"},
        {"arrival,arrival\n1,2\n", "names two columns"},
        {"session,arrival\n1\n", "a.csv:2: the line has no arrival"},
        {"0\n40000000\n", "more than 366 days"},
        {"100000000001\n", "is not a time"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_refused(rows[i].text, strlen(rows[i].text), rows[i].part);
    assert_refused("1\0002\n", 4, "a.csv:1: \"1?2\" is not a time"); /* a null byte ends no field */
    char longer[200];
    memset(longer, '1', sizeof(longer));
    assert_refused(longer, sizeof(longer), "is not a time");
}

static void test_read(void **state)
{
    (void)state;
    struct tl_arrivals arrivals;
    struct tl_error err = {0};
    assert_false(tl_arrivals_read("/nonexistent/a.csv", &arrivals, &err));
    assert_int_equal(err.kind, TL_ERR_SYSTEM);
    assert_false(tl_arrivals_read("/", &arrivals, &err));
    assert_int_equal(err.kind, TL_ERR_SYSTEM);
    /* A file that is read in several pieces. */
    char path[] = "/tmp/arrivals-XXXXXX";
    int fd = mkstemp(path);
    FILE *file = fdopen(fd, "w");
    assert_non_null(file);
    for (int i = 0; i < 100000; i++)
        fprintf(file, "%d\n", i);
    assert_int_equal(fclose(file), 0);
    assert_true(tl_arrivals_read(path, &arrivals, &err));
    assert_int_equal(arrivals.n, 100000);
    assert_int_equal(arrivals.list[99999].at_ms, 99999000);
    tl_arrivals_free(&arrivals);
    assert_int_equal(remove(path), 0);
}

/* The share of a crowd that has come by a third and by the middle of its time. */
static void assert_shape(enum tl_crowd_shape shape, int64_t peak_ms, double third, double middle)
{
    struct tl_crowd crowd = {
        .visitors = 100000, .shape = shape, .over_ms = 60000, .peak_ms = peak_ms};
    struct tl_arrivals arrivals;
    tl_arrivals_draw(&crowd, 1, &arrivals);
    assert_int_equal(arrivals.n, 100000);
    double by_third = 0;
    double by_middle = 0;
    for (size_t i = 0; i < arrivals.n; i++) {
        int64_t at = arrivals.list[i].at_ms;
        assert_true(at >= 0 && at <= 60000);
        assert_true(i == 0 || at >= arrivals.list[i - 1].at_ms);
        by_third += at < 20000 ? 1e-5 : 0;
        by_middle += at < 30000 ? 1e-5 : 0;
    }
    assert_near(by_third, third, 0.01); /* six standard deviations */
    assert_near(by_middle, middle, 0.01);
    tl_arrivals_free(&arrivals);
}

static void test_crowds(void **state)
{
    (void)state;
    assert_shape(TL_CROWD_EVEN, -1, 1.0 / 3, 0.5);
    assert_shape(TL_CROWD_RUSH, -1, 0.7501, 0.8808);
    assert_shape(TL_CROWD_WAVE, -1, 2.0 / 9, 0.5);
    assert_shape(TL_CROWD_WAVE, 60000, 1.0 / 9, 0.25);
    assert_shape(TL_CROWD_WAVE, 0, 5.0 / 9, 0.75);
}

static void test_random(void **state)
{
    (void)state;
    assert_true(tl_random_of(1, 2, 3) == tl_random_of(1, 2, 3));
    assert_true(tl_random_of(1, 2, 3) != tl_random_of(1, 2, 4));
    assert_true(tl_random_of(1, 2, 3) != tl_random_of(1, 3, 3));
    assert_true(tl_random_of(1, 2, 3) != tl_random_of(2, 2, 3));
    for (uint64_t i = 0; i < 100000; i++) {
        double u = tl_random_of(0, i, 0);
        assert_true(u > 0 && u < 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),   cmocka_unit_test(test_bad),    cmocka_unit_test(test_read),
        cmocka_unit_test(test_crowds), cmocka_unit_test(test_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
