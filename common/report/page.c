/* SPDX-License-Identifier: Apache-2.0 */
/* The report as a page. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/report/report.h"
#include "common/words/json.h"

static const char head[] =
    "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width\">\n<style>\n"
    "body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 "
    "1rem }\n"
    "svg { max-width: 100%; height: auto } h2 { margin-top: 2rem }\n"
    "table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums }\n"
    "th, td { padding: .2rem .5rem; text-align: left; border-bottom: 1px solid #ccc }\n"
    ".steps th, .steps td { text-align: right } .steps :first-child { text-align: left; "
    "white-space: nowrap }\n"
    "thead { display: table-header-group } tr, svg { break-inside: avoid }\n"
    "@media screen and (prefers-color-scheme: dark) { body { background: #16181b; color: #e8eaed } "
    "}\n"
    "@media print { body { margin: 0; max-width: none; font-size: 10pt } }\n"
    "</style>\n";

static void put_cell(const char *text, struct tl_text *out)
{
    tl_text_append(out, "<td>");
    tl_markup_append(out, text);
}

static void put_time(const json_t *object, struct tl_text *out)
{
    char text[40];
    tl_terminal_time_of(tl_json_text(object, "at"), text, sizeof(text));
    put_cell(text, out);
}

static void put_sentences(const json_t *report, struct tl_text *out)
{
    struct tl_sentences sentences = {0};
    tl_report_say(report, &sentences);
    for (size_t i = 0; i < sentences.n; i++) {
        tl_text_append(out, "<p>");
        tl_markup_append(out, sentences.texts[i]);
        tl_text_append(out, "</p>\n");
    }
}

/* level: of the heading. */
static void put_changes(const json_t *changes, int level, struct tl_text *out)
{
    const json_t *change;
    size_t i;
    if (json_array_size(changes) == 0)
        return;
    tl_text_append(out,
                   "<h%d>Changes</h%d>\n<table><thead><tr><th>No.<th>Time<th>Who<th>What<th>"
                   "Change</thead>\n",
                   level, level);
    json_array_foreach(changes, i, change)
    {
        struct tl_text words = {0};
        tl_change_describe_whole(change, &words);
        tl_text_append(out, "<tr><td>%zu", i + 1);
        put_time(change, out);
        put_cell(tl_json_text(change, "who"), out);
        put_cell(tl_json_text(change, "what"), out);
        put_cell(words.length > 0 ? words.data : "", out);
        tl_text_append(out, "\n");
        tl_text_free(&words);
    }
    tl_text_append(out, "</table>\n");
}

/* A row for each step, or each lane, without a heading. */
static void put_rows(const json_t *rows, bool of_lanes, struct tl_text *out)
{
    const json_t *row;
    size_t i, n;
    const struct tl_report_column *columns = tl_report_columns(&n);
    tl_text_append(out, "<table class=\"steps\"><thead><tr><th>%s", of_lanes ? "Lane" : "From");
    for (size_t k = 0; k < n; k++)
        if (!of_lanes || columns[k].of_lane)
            tl_text_append(out, "<th>%s", columns[k].title);
    tl_text_append(out, "</thead>\n");
    json_array_foreach(rows, i, row)
    {
        tl_text_append(out, "<tr>");
        if (of_lanes)
            put_cell(tl_json_text(row, "lane"), out);
        else
            put_time(row, out);
        for (size_t k = 0; k < n; k++)
            if (!of_lanes || columns[k].of_lane)
                put_cell(tl_report_cell(row, &columns[k]).text, out);
        tl_text_append(out, "\n");
    }
    tl_text_append(out, "</table>\n");
}

static void put_lanes(const json_t *report, int level, struct tl_text *out)
{
    const json_t *lanes = json_object_get(report, "lanes");
    if (json_array_size(lanes) < 2)
        return;
    tl_text_append(out, "<h%d>Lanes</h%d>\n", level, level);
    put_rows(lanes, true, out);
}

/* Puts both beside each other. */
static void put_figures(const json_t *const reports[2], struct tl_text *out)
{
    struct tl_report_figure figures[2][TL_REPORT_FIGURES];
    char name[TL_QUEUE_NAME_MAX + 16];
    tl_text_append(out, "<table class=\"steps\"><thead><tr><td>");
    for (size_t i = 0; i < 2; i++) {
        tl_report_figures(reports[i], figures[i]);
        tl_report_name(reports[i], name);
        tl_text_append(out, "<th>");
        tl_markup_append(out, name);
    }
    tl_text_append(out, "</thead>\n");
    for (size_t row = 0; row < TL_REPORT_FIGURES; row++)
        tl_text_append(out, "<tr><td>%s<td>%s<td>%s\n", figures[0][row].label,
                       figures[0][row].value.text, figures[1][row].value.text);
    tl_text_append(out, "</table>\n");
}

static void put_chart(const struct tl_chart *chart, struct tl_text *out)
{
    struct tl_text svg = {0};
    tl_chart_svg(chart, &svg);
    if (svg.failed)
        out->failed = true;
    else
        tl_text_append(out, "%s", strstr(svg.data, "<svg"));
    tl_text_free(&svg);
}

/* The curves of both, or of one. */
static void put_curves(const json_t *report, const json_t *other, struct tl_text *out)
{
    char name[TL_QUEUE_NAME_MAX + 16], other_name[TL_QUEUE_NAME_MAX + 16], when[96];
    struct tl_series *series = calloc(2, sizeof(*series));
    if (series == NULL) {
        out->failed = true;
        return;
    }
    tl_report_series(report, other, &series[0], &series[1]);
    tl_report_name(report, name);
    tl_report_when(report, when);
    struct tl_chart chart = {
        .series = &series[0], .name = name, .title = "The line over time", .description = when};
    if (other != NULL) {
        tl_report_name(other, other_name);
        chart.other = &series[1];
        chart.other_name = other_name;
        chart.description = "Counted from the opening of each";
    }
    put_chart(&chart, out);
    free(series);
}

static void put_head(const char *title, struct tl_text *out)
{
    tl_text_append(out, "%s<title>", head);
    tl_markup_append(out, title);
    tl_text_append(out, "</title></head><body><main>\n<h1>");
    tl_markup_append(out, title);
    tl_text_append(out, "</h1>\n");
}

static void put_one(const json_t *report, struct tl_text *out)
{
    char title[TL_QUEUE_NAME_MAX + 16], when[96];
    snprintf(title, sizeof(title), "Queue %.*s", TL_QUEUE_NAME_MAX, tl_json_text(report, "queue"));
    tl_report_when(report, when);
    put_head(title, out);
    tl_text_append(out, "<p>%s</p>\n", when);
    put_sentences(report, out);
    put_curves(report, NULL, out);
    put_lanes(report, 2, out);
    put_changes(json_object_get(report, "changes"), 2, out);
    tl_text_append(out, "<h2>Over time</h2>\n");
    put_rows(json_object_get(report, "steps"), false, out);
}

static void put_both(const json_t *const reports[2], struct tl_text *out)
{
    char title[2 * (TL_QUEUE_NAME_MAX + 16) + 8], names[2][TL_QUEUE_NAME_MAX + 16], when[96];
    for (size_t i = 0; i < 2; i++)
        tl_report_name(reports[i], names[i]);
    snprintf(title, sizeof(title), "%s and %s", names[0], names[1]);
    put_head(title, out);
    put_figures(reports, out);
    put_curves(reports[0], reports[1], out);
    for (size_t i = 0; i < 2; i++) {
        tl_report_when(reports[i], when);
        tl_text_append(out, "<h2>%s</h2>\n<p>%s</p>\n", names[i], when);
        put_sentences(reports[i], out);
        put_lanes(reports[i], 3, out);
        put_changes(json_object_get(reports[i], "changes"), 3, out);
    }
}

void tl_report_page(const json_t *report, const json_t *other, struct tl_text *out)
{
    if (other != NULL)
        put_both((const json_t *const[]){report, other}, out);
    else
        put_one(report, out);
    tl_text_append(out, "</main></body></html>\n");
}
