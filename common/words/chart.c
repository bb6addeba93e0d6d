/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/words/chart.h"
#include "common/words/words.h"

enum {
    COLUMNS = 64, /* of a text chart, without the numbers on the left */
    LABEL = 11,   /* columns of those: "10,000,000" */
    WIDTH = 960,  /* of the SVG */
    HEIGHT = 480,
    LEFT = 84,
    RIGHT = 24,
};

/* One of the two curves. */
typedef uint64_t value_of(const struct tl_series_point *point);

static uint64_t waiting_of(const struct tl_series_point *point)
{
    return point->waiting;
}

static uint64_t active_of(const struct tl_series_point *point)
{
    return point->active;
}

static uint64_t most(const struct tl_series *series, value_of *value, size_t from, size_t to)
{
    uint64_t found = 0;
    for (size_t i = from; i < to; i++)
        found = value(&series->points[i]) > found ? value(&series->points[i]) : found;
    return found;
}

/* ---- text ---- */

static void draw_rows(const struct tl_series *series, value_of *value, uint64_t rows, char mark,
                      const char *colour, struct tl_text *out)
{
    uint64_t top = most(series, value, 0, series->n);
    rows = rows > top && top > 0 ? top : rows;
    uint64_t heights[COLUMNS]; /* in rows; what is not 0 has at least one */
    for (size_t i = 0; i < COLUMNS; i++) {
        size_t from = i * series->n / COLUMNS;
        size_t to = (i + 1) * series->n / COLUMNS;
        uint64_t found = most(series, value, from, to > from ? to : from + 1);
        heights[i] = top == 0 ? 0 : (found * rows + top - 1) / top;
    }
    for (uint64_t row = rows; row > 0; row--) {
        const struct tl_words label = row == rows ? tl_words_whole(top) : (struct tl_words){""};
        char line[COLUMNS + 1];
        size_t length = 0;
        for (size_t i = 0; i < COLUMNS; i++) {
            line[i] = heights[i] >= row ? mark : ' ';
            length = line[i] == mark ? i + 1 : length;
        }
        line[length] = '\0';
        if (length > 0 && colour != NULL)
            tl_text_append(out, "%*s |\033[%sm%s\033[0m\n", LABEL, label.text, colour, line);
        else
            tl_text_append(out, "%*s |%s\n", LABEL, label.text, line);
    }
}

/* "-5 min" for what is before. */
static struct tl_words axis_time(int64_t ms)
{
    struct tl_words words = {"-"};
    if (ms >= 0)
        return tl_words_time(ms);
    snprintf(words.text + 1, sizeof(words.text) - 1, "%.40s", tl_words_time(-ms).text);
    return words;
}

static void draw_axis(const struct tl_series *series, struct tl_text *out)
{
    char line[COLUMNS + 1];
    memset(line, '-', COLUMNS);
    line[COLUMNS] = '\0';
    int64_t end_ms = (int64_t)series->n * series->width_ms;
    const struct tl_words middle = axis_time(series->begin_ms + end_ms / 2);
    const struct tl_words zero = {"0"};
    const struct tl_words first = series->begin_ms == 0 ? zero : axis_time(series->begin_ms);
    const int half = (int)strlen(middle.text) / 2, used = (int)strlen(first.text);
    tl_text_append(out, "%*d +%s\n", LABEL, 0, line);
    tl_text_append(out, "%*s%s%*s%*s\n", LABEL + 2, "", first.text, COLUMNS / 2 + half - used,
                   middle.text, COLUMNS / 2 - half, axis_time(series->begin_ms + end_ms).text);
}

/* Below the columns of the marks, their numbers; "*" where one digit does not do. */
static void draw_marks(const struct tl_series *series, struct tl_text *out)
{
    const int64_t end_ms = (int64_t)series->n * series->width_ms;
    char line[COLUMNS + 1];
    int64_t length = 0;
    memset(line, ' ', COLUMNS);
    for (size_t i = 0; i < series->n_marks; i++) {
        int64_t column = series->marks_ms[i] * COLUMNS / end_ms;
        if (column < 0 || column >= COLUMNS)
            continue;
        line[column] = line[column] == ' ' && i < 9 ? (char)('1' + i) : '*';
        length = column >= length ? column + 1 : length;
    }
    if (length > 0)
        tl_text_append(out, "%*s  %.*s\n", LABEL, "Changes", (int)length, line);
}

void tl_chart_text(const struct tl_series *series, bool colour, struct tl_text *out)
{
    tl_text_append(out, "Waiting\n");
    draw_rows(series, waiting_of, 12, '#', colour ? "36" : NULL, out);
    draw_axis(series, out);
    tl_text_append(out, "Active\n");
    draw_rows(series, active_of, 5, '=', colour ? "32" : NULL, out);
    draw_axis(series, out);
    draw_marks(series, out);
}

/* ---- SVG ---- */

static const char head[] =
    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
    "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" "
    "role=\"img\" aria-labelledby=\"title description\">\n"
    "<style>\n"
    "  svg { background: #fff; color: #1a1d21; font: 13px sans-serif }\n"
    "  text { fill: currentColor } .title { font-size: 16px; font-weight: bold }\n"
    "  .grid { stroke: currentColor; stroke-opacity: .18 }\n"
    "  .mark { stroke: currentColor; stroke-dasharray: 2 3 }\n"
    "  .waiting { stroke: #0b62a8; fill: #0b62a8; fill-opacity: .22; stroke-width: 1.5 }\n"
    "  .active { stroke: #237a3b; fill: #237a3b; fill-opacity: .22; stroke-width: 1.5 }\n"
    "  .other { stroke: #a8410b; fill: none; stroke-width: 1.5; stroke-dasharray: 5 3 }\n"
    "  @media (prefers-color-scheme: dark) {\n"
    "    svg { background: #16181b; color: #e8eaed }\n"
    "    .waiting { stroke: #6db3f2; fill: #6db3f2 } .active { stroke: #7bd08f; fill: #7bd08f }\n"
    "    .other { stroke: #f2a76d }\n"
    "  }\n"
    "</style>\n";

/* Where a curve is drawn. */
struct panel {
    const char *name, *style;
    value_of *value;
    int top, bottom;
    bool times; /* has the labels of the time axis */
};

static double x_of(int64_t ms, int64_t end_ms)
{
    return LEFT + (double)ms / (double)end_ms * (WIDTH - LEFT - RIGHT);
}

/* The top and the middle, and eight stretches of time. */
static void draw_grid(const struct panel *panel, uint64_t top, const struct tl_series *series,
                      struct tl_text *out)
{
    const int64_t end_ms = (int64_t)series->n * series->width_ms;
    for (int i = 0; i <= 2; i++) {
        double y = panel->bottom - i / 2.0 * (panel->bottom - panel->top);
        tl_text_append(out,
                       "<line class=\"grid\" x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\"/>"
                       "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n",
                       LEFT, y, WIDTH - RIGHT, y, LEFT - 8, y + 4,
                       tl_words_number((double)top * i / 2, 1).text);
    }
    for (int i = 0; i <= 8; i++) {
        int64_t ms = end_ms * i / 8;
        double x = x_of(ms, end_ms);
        tl_text_append(out, "<line class=\"grid\" x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%d\"/>\n",
                       x, panel->top, x, panel->bottom);
        if (panel->times)
            tl_text_append(out, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%s</text>\n", x,
                           panel->bottom + 20, axis_time(series->begin_ms + ms).text);
    }
}

/* Steps, because the line is constant between two events. */
static void draw_curve(const struct tl_series *series, const struct panel *panel, uint64_t top,
                       const char *style, struct tl_text *out)
{
    int64_t end_ms = (int64_t)series->n * series->width_ms;
    tl_text_append(out, "<path class=\"%s\" d=\"M%d %d", style, LEFT, panel->bottom);
    for (size_t i = 0; i < series->n; i++)
        tl_text_append(out, "V%.1fH%.1f",
                       panel->bottom - (double)panel->value(&series->points[i]) / (double)top *
                                           (panel->bottom - panel->top),
                       x_of((int64_t)(i + 1) * series->width_ms, end_ms));
    tl_text_append(out, "V%dZ\"/>\n", panel->bottom);
}

static void draw_panel(const struct tl_chart *chart, const struct panel *panel, struct tl_text *out)
{
    const struct tl_series *series = chart->series, *other = chart->other;
    uint64_t top = most(series, panel->value, 0, series->n);
    uint64_t second = other != NULL ? most(other, panel->value, 0, other->n) : 0;
    top = second > top ? second : top > 0 ? top : 1;
    tl_text_append(out, "<text x=\"%d\" y=\"%d\">%s</text>\n", LEFT, panel->top - 8, panel->name);
    draw_grid(panel, top, series, out);
    draw_curve(series, panel, top, panel->style, out);
    if (other != NULL)
        draw_curve(other, panel, top, "other", out);
}

/* Which curve is whose. */
static void draw_names(const struct tl_chart *chart, struct tl_text *out)
{
    static const char *const styles[] = {"waiting", "other"};
    const char *const names[] = {chart->name, chart->other_name};
    for (int i = 0; i < 2; i++) {
        const int x = WIDTH / 2 + i * WIDTH / 4;
        tl_text_append(out, "<path class=\"%s\" d=\"M%d 24h28\"/><text x=\"%d\" y=\"28\">",
                       styles[i], x, x + 36);
        tl_markup_append(out, names[i]);
        tl_text_append(out, "</text>\n");
    }
}

static void draw_numbers(const struct tl_series *series, int top, int middle, int bottom,
                         struct tl_text *out)
{
    for (size_t i = 0; i < series->n_marks; i++) {
        double x = x_of(series->marks_ms[i], (int64_t)series->n * series->width_ms);
        tl_text_append(out,
                       "<line class=\"mark\" x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%d\"/>"
                       "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%zu</text>\n",
                       x, top, x, bottom, x, middle + 16, i + 1);
    }
}

void tl_chart_svg(const struct tl_chart *chart, struct tl_text *out)
{
    static const struct panel line = {"Waiting", "waiting", waiting_of, 84, 284, false};
    static const struct panel active = {"Active", "active", active_of, 324, 444, true};
    tl_text_append(out, head, WIDTH, HEIGHT, WIDTH, HEIGHT);
    tl_text_append(out, "<title id=\"title\">");
    tl_markup_append(out, chart->title);
    tl_text_append(out, "</title>\n<desc id=\"description\">");
    tl_markup_append(out, chart->description);
    tl_text_append(out, "</desc>\n<text class=\"title\" x=\"%d\" y=\"28\">", LEFT);
    tl_markup_append(out, chart->title);
    tl_text_append(out, "</text>\n<text x=\"%d\" y=\"50\">", LEFT);
    tl_markup_append(out, chart->description);
    tl_text_append(out, "</text>\n");
    draw_panel(chart, &line, out);
    draw_panel(chart, &active, out);
    if (chart->other != NULL)
        draw_names(chart, out);
    else
        draw_numbers(chart->series, line.top, line.bottom, active.bottom, out);
    tl_text_append(out, "</svg>\n");
}
