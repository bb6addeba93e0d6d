/* SPDX-License-Identifier: Apache-2.0 */
/* Charts of `tellerline plan`: the curve in bounded memory, as text and as SVG. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/words/chart.h"
#include "lab/simulate.h"
#include "tests/unit/random.h"

/* Against the same curve kept moment by moment. */
static void test_series(void **state)
{
    (void)state;
    enum { MOMENTS = 9000 };
    uint64_t seed = random_seed("test_series");
    static uint64_t waiting[MOMENTS];
    static struct tl_series series;
    struct tl_series_point point = {0};
    uint64_t arrived = 0;
    series = (struct tl_series){.width_ms = 1};
    for (int64_t now = 0; now < MOMENTS; now++) {
        if (now == 0 || random_below(&seed, 50) == 0) {
            point.arrived = random_below(&seed, 10);
            point.waiting = random_below(&seed, 1000);
            arrived += point.arrived;
            tl_series_note(&series, now, &point);
        }
        waiting[now] = point.waiting;
    }
    point.arrived = 0;
    tl_series_note(&series, MOMENTS - 1, &point);
    assert_int_equal(series.width_ms, 16); /* 9,000 ms in at most 1,024 */
    assert_int_equal(series.n, (MOMENTS + 15) / 16);
    for (size_t i = 0; i < series.n; i++) {
        uint64_t most = 0;
        for (size_t ms = 16 * i; ms < 16 * (i + 1) && ms < MOMENTS; ms++)
            most = waiting[ms] > most ? waiting[ms] : most;
        assert_int_equal(series.points[i].waiting, most);
        arrived -= series.points[i].arrived;
    }
    assert_int_equal(arrived, 0);
}

static void draw(const struct tl_series *series, const char *title, const char *description,
                 struct tl_text *out)
{
    tl_chart_svg(&(struct tl_chart){.series = series, .title = title, .description = description},
                 out);
}

/* No line is wider than 80 columns; the curve has its height; colour only when asked for. */
static void test_text(void **state)
{
    (void)state;
    static struct tl_series series;
    struct tl_text out = {0};
    series = (struct tl_series){.width_ms = 1};
    tl_series_note(&series, 0, &(struct tl_series_point){.waiting = 10000000, .active = 3});
    tl_series_note(&series, 5000, &(struct tl_series_point){.waiting = 1});
    tl_series_note(&series, 9999, &(struct tl_series_point){0});
    tl_chart_text(&series, false, &out);
    assert_false(out.failed);
    assert_non_null(strstr(out.data, " 10,000,000 |################################"));
    assert_non_null(strstr(out.data, "          3 |================================"));
    assert_null(strchr(out.data, '\033'));
    size_t rows = 0;
    for (const char *line = out.data; *line != '\0'; line += strcspn(line, "\n") + 1, rows++)
        assert_true(strcspn(line, "\n") <= 80);
    assert_int_equal(rows, 1 + 12 + 2 + 1 + 3 + 2);
    tl_text_free(&out);
    tl_chart_text(&series, true, &out);
    assert_non_null(strstr(out.data, "\033[36m#"));
    tl_text_free(&out);

    /* One moment without anyone. */
    series = (struct tl_series){.width_ms = 1};
    tl_series_note(&series, 0, &(struct tl_series_point){0});
    tl_chart_text(&series, false, &out);
    assert_non_null(strstr(out.data, "          0 |\n"));
    tl_text_free(&out);
    draw(&series, "", "", &out);
    assert_non_null(strstr(out.data, "</svg>\n"));
    assert_null(strstr(out.data, "nan"));
    tl_text_free(&out);
}

/* Each mark has its number at its place, or shares one. */
static void test_marks(void **state)
{
    (void)state;
    static struct tl_series series;
    struct tl_text out = {0};
    series =
        (struct tl_series){.width_ms = 1000, .n = 64, .n_marks = 3, .marks_ms = {0, 10000, 10999}};
    tl_chart_text(&series, false, &out);
    assert_non_null(strstr(out.data, "\n    Changes  1         *\n"));
    tl_text_free(&out);
    draw(&series, "", "", &out);
    assert_non_null(strstr(out.data, "<line class=\"mark\" x1=\"84.0\""));
    assert_non_null(strstr(out.data, ">3</text>"));
    tl_text_free(&out);
}

static void test_svg_escapes(void **state)
{
    (void)state;
    static struct tl_series series;
    struct tl_text out = {0};
    series = (struct tl_series){.width_ms = 1};
    tl_series_note(&series, 0, &(struct tl_series_point){.waiting = 7});
    draw(&series, "a<b>&\"c\"", "\x01\xC3x\u00e4", &out);
    assert_non_null(strstr(out.data, "<title id=\"title\">a&#60;b&#62;&#38;&#34;c&#34;</title>"));
    assert_non_null(strstr(out.data, "<desc id=\"description\">??x\u00e4</desc>"));
    tl_text_free(&out);
}

/* Two lines have one axis, which begins before 0, and one height: that of the higher one. */
static void test_two(void **state)
{
    (void)state;
    static struct tl_series one, other;
    struct tl_text out = {0};
    one = other = (struct tl_series){.width_ms = 60000, .begin_ms = -120000, .n = 8};
    one.points[2].waiting = 7;
    other.points[3].waiting = 4711;
    tl_chart_svg(&(struct tl_chart){.series = &one,
                                    .other = &other,
                                    .name = "spring",
                                    .other_name = "autumn",
                                    .title = "",
                                    .description = ""},
                 &out);
    for (size_t i = 0; i < 5; i++)
        assert_non_null(strstr(out.data, ((const char *const[]){">spring<", ">autumn<", ">-2 min<",
                                                                ">6 min<", ">4,711<"})[i]));
    assert_null(strstr(out.data, "class=\"mark\""));
    tl_text_free(&out);
    tl_chart_text(&one, false, &out);
    assert_non_null(strstr(out.data, "\n             -2 min   "));
    assert_non_null(strstr(out.data, "6 min\nActive\n"));
    tl_text_free(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_series), cmocka_unit_test(test_text),
        cmocka_unit_test(test_marks),  cmocka_unit_test(test_svg_escapes),
        cmocka_unit_test(test_two),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
