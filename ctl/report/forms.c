/* SPDX-License-Identifier: Apache-2.0 */
/* The report as text and as CSV. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/units.h"

#include "ctl/calls/calls.h"
#include "ctl/report/report.h"

#define NAME_SIZE (TL_QUEUE_NAME_MAX + 16)

/* ---- text ---- */

static const struct tl_member changes_shown[] = {
    TL_MEMBER("", "n", NUMBER, ""),
    TL_MEMBER("TIME", "at", TIME, ""),
    TL_MEMBER("WHO", "who", TEXT, "-"),
    TL_MEMBER("WHAT", "what", TEXT, "-"),
    TL_MEMBER_SHOWN("CHANGE", TEXT, tl_change_describe, NULL),
    {.title = NULL}};

#define WAIT(title, name) TL_MEMBER(title, name, WAIT, "-")
static const struct tl_member lanes_shown[] = {TL_MEMBER("LANE", "lane", TEXT, "-"),
                                               TL_MEMBER("ARRIVED", "arrived", NUMBER, ""),
                                               TL_MEMBER("ADMITTED", "admitted", NUMBER, ""),
                                               TL_MEMBER("GAVE UP", "gave_up", NUMBER, ""),
                                               TL_MEMBER("NO-SHOWS", "no_shows", NUMBER, ""),
                                               WAIT("WAIT: HALF", "p50_ms"),
                                               WAIT("90 %", "p90_ms"),
                                               WAIT("99 %", "p99_ms"),
                                               {.title = NULL}};

static const struct tl_member sales_shown[] = {TL_MEMBER("SALE", "sale", NUMBER, ""),
                                               TL_MEMBER("FROM", "from", TIME, ""),
                                               TL_MEMBER("UNTIL", "until", TIME, ""),
                                               TL_MEMBER("ARRIVED", "arrived", NUMBER, ""),
                                               TL_MEMBER("ADMITTED", "admitted", NUMBER, ""),
                                               TL_MEMBER("NO-SHOWS", "no_shows", NUMBER, ""),
                                               WAIT("WAIT: 90 %", "p90_ms"),
                                               {.title = NULL}};

static void write_lanes(const json_t *report, bool colour, struct tl_text *out)
{
    const json_t *lanes = json_object_get(report, "lanes");
    if (json_array_size(lanes) < 2)
        return;
    tl_list_write(lanes, lanes_shown, colour, false, out);
    tl_text_append(out, "\n");
}

static void write_one(const json_t *report, bool colour, struct tl_text *out)
{
    char when[96];
    struct tl_sentences sentences = {0};
    struct tl_series *series = tl_xalloc(1, sizeof(*series));
    const json_t *changes = json_object_get(report, "changes");
    tl_report_when(report, when);
    tl_report_say(report, &sentences);
    tl_report_series(report, NULL, series, NULL);
    tl_text_append(out, "Queue %s\n  %s\n\n", tl_json_text(report, "queue"), when);
    for (size_t i = 0; i < sentences.n; i++)
        tl_text_append(out, "%s\n", sentences.texts[i]);
    tl_text_append(out, "\n");
    write_lanes(report, colour, out);
    tl_chart_text(series, colour, out);
    free(series);
    if (json_array_size(changes) == 0)
        return;
    tl_text_append(out, "\nChanges\n");
    tl_list_write(changes, changes_shown, colour, false, out);
}

/* The figures of both beside each other, and their curves on one axis. */
static void write_both(const json_t *const reports[2], bool colour, struct tl_text *out)
{
    struct tl_report_figure figures[2][TL_REPORT_FIGURES];
    char names[2][NAME_SIZE];
    struct tl_series *series = tl_xalloc(2, sizeof(*series));
    tl_report_series(reports[0], reports[1], &series[0], &series[1]);
    for (size_t i = 0; i < 2; i++) {
        tl_report_figures(reports[i], figures[i]);
        tl_report_name(reports[i], names[i]);
    }
    tl_text_append(out, "%-34s%23.22s%23.22s\n", "", names[0], names[1]);
    for (size_t row = 0; row < TL_REPORT_FIGURES; row++)
        tl_text_append(out, "%-34s%23s%23s\n", figures[0][row].label, figures[0][row].value.text,
                       figures[1][row].value.text);
    for (size_t i = 0; i < 2; i++) {
        tl_text_append(out, "\n%s, from its opening on\n", names[i]);
        series[i].n_marks = 0; /* the changes are not listed here */
        tl_chart_text(&series[i], colour, out);
    }
    free(series);
}

void tl_report_text(const json_t *report, const json_t *other, bool colour, struct tl_text *out)
{
    if (other == NULL)
        write_one(report, colour, out);
    else
        write_both((const json_t *const[]){report, other}, colour, out);
}

void tl_report_list(const json_t *sales, bool colour, struct tl_text *out)
{
    tl_list_write(json_object_get(sales, "sales"), sales_shown, colour, false, out);
}

/* ---- CSV ---- */

static void write_steps(const json_t *report, bool named, struct tl_text *out)
{
    char name[NAME_SIZE];
    const json_t *step;
    size_t i, n;
    int64_t opened_ms = 0, at_ms = 0;
    const struct tl_report_column *columns = tl_report_columns(&n);
    tl_report_name(report, name);
    (void)tl_time_parse(tl_json_text(report, "opened"), &opened_ms, NULL);
    json_array_foreach(json_object_get(report, "steps"), i, step)
    {
        (void)tl_time_parse(tl_json_text(step, "at"), &at_ms, NULL);
        if (named)
            tl_text_append(out, "%s,%" PRId64 ",", name, (at_ms - opened_ms) / 1000);
        tl_text_append(out, "%s", tl_json_text(step, "at"));
        for (size_t k = 0; k < n; k++) {
            const json_t *value = json_object_get(step, columns[k].name);
            if (json_is_integer(value))
                tl_text_append(out, ",%" JSON_INTEGER_FORMAT, json_integer_value(value));
            else
                tl_text_append(out, ",");
        }
        tl_text_append(out, "\n");
    }
}

void tl_report_csv(const json_t *report, const json_t *other, struct tl_text *out)
{
    size_t n;
    const struct tl_report_column *columns = tl_report_columns(&n);
    tl_text_append(out, other != NULL ? "sale,after_seconds,at" : "at");
    for (size_t k = 0; k < n; k++)
        tl_text_append(out, ",%s", columns[k].name);
    tl_text_append(out, "\n");
    write_steps(report, other != NULL, out);
    if (other != NULL)
        write_steps(other, true, out);
}
