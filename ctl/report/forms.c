/* SPDX-License-Identifier: Apache-2.0 */
/* The report in the forms that are not JSON. */
#include <inttypes.h>
#include <string.h>

#include "lab/report.h"
#include "lab/words.h"

#include "ctl/calls/calls.h"
#include "ctl/report/report.h"

static struct tl_words count_of(const json_t *object, const char *name)
{
    return tl_words_whole(tl_json_count(object, name));
}

/* Of a member that may be null. */
static struct tl_words wait_of(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    return tl_words_time(json_is_integer(value) ? (int64_t)json_integer_value(value) : -1);
}

static void say_when(const json_t *report, char text[96])
{
    char from[40], until[40];
    tl_terminal_time_of(tl_json_text(report, "from"), from, sizeof(from));
    tl_terminal_time_of(tl_json_text(report, "until"), until, sizeof(until));
    snprintf(text, 96, "%s to %s", from, until);
}

static void say_all(const json_t *report, struct tl_sentences *sentences)
{
    const json_t *totals = json_object_get(report, "totals");
    const json_t *waits = json_object_get(report, "waits"), *gap;
    const json_t *used = json_object_get(json_object_get(report, "capacity"), "used_while_waiting");
    size_t i;
    tl_say(sentences, "Arrived %s: admitted %s, gave up %s, still waiting %s.",
           count_of(totals, "arrived").text, count_of(totals, "admitted").text,
           count_of(totals, "gave_up").text, count_of(totals, "waiting").text);
    tl_say(sentences,
           "Of those admitted: completed %s, left %s, ran out of time %s, did not come %s, "
           "still in %s.",
           count_of(totals, "completed").text, count_of(totals, "left").text,
           count_of(totals, "expired").text, count_of(totals, "no_shows").text,
           count_of(totals, "active").text);
    if (tl_json_count(totals, "removed") > 0)
        tl_say(sentences, "Removed by operators: %s.", count_of(totals, "removed").text);
    if (json_is_integer(json_object_get(waits, "p50_ms")))
        tl_say(sentences,
               "Waits of those admitted: half up to %s, 90 %% up to %s, 99 %% up to %s, "
               "the longest %s.",
               wait_of(waits, "p50_ms").text, wait_of(waits, "p90_ms").text,
               wait_of(waits, "p99_ms").text, wait_of(waits, "longest_ms").text);
    if (json_is_number(used))
        tl_say(sentences, "Capacity used while people waited: %s.",
               tl_words_share(json_number_value(used)).text);
    json_array_foreach(json_object_get(report, "gaps"), i, gap)
    {
        char since[40], until[40];
        tl_terminal_time_of(tl_json_text(gap, "since"), since, sizeof(since));
        tl_terminal_time_of(tl_json_text(gap, "until"), until, sizeof(until));
        tl_say(sentences, "The record has a gap from %s to %s: these figures may lack something.",
               since, until);
    }
}

/* ---- text ---- */

static const struct tl_member changes_shown[] = {
    TL_MEMBER("", "n", NUMBER, ""),
    TL_MEMBER("TIME", "at", TIME, ""),
    TL_MEMBER("WHO", "who", TEXT, "-"),
    TL_MEMBER("WHAT", "what", TEXT, "-"),
    TL_MEMBER_SHOWN("CHANGE", TEXT, tl_change_describe, NULL),
    {.title = NULL}};

void tl_report_text(const json_t *report, const struct tl_series *series, bool colour,
                    struct tl_text *out)
{
    char when[96];
    struct tl_sentences sentences = {0};
    const json_t *changes = json_object_get(report, "changes");
    say_when(report, when);
    say_all(report, &sentences);
    tl_text_append(out, "Queue %s\n  %s\n\n", tl_json_text(report, "queue"), when);
    for (size_t i = 0; i < sentences.n; i++)
        tl_text_append(out, "%s\n", sentences.texts[i]);
    tl_text_append(out, "\n");
    tl_chart_text(series, colour, out);
    if (json_array_size(changes) == 0)
        return;
    tl_text_append(out, "\nChanges\n");
    tl_list_write(changes, changes_shown, colour, false, out);
}

/* ---- CSV ---- */

static const struct {
    const char *name, *title;
    bool is_wait;
} columns[] = {
    {"arrived", "Arrived", false},   {"admitted", "Admitted", false}, {"gave_up", "Gave up", false},
    {"no_shows", "No-shows", false}, {"waiting", "Waiting", false},   {"active", "Active", false},
    {"capacity", "Capacity", false}, {"p50_ms", "Wait: half", true},  {"p90_ms", "90 %", true},
    {"p99_ms", "99 %", true},
};
enum { N_COLUMNS = sizeof(columns) / sizeof(columns[0]) };

void tl_report_csv(const json_t *report, struct tl_text *out)
{
    const json_t *step;
    size_t i;
    tl_text_append(out, "at");
    for (size_t k = 0; k < N_COLUMNS; k++)
        tl_text_append(out, ",%s", columns[k].name);
    tl_text_append(out, "\n");
    json_array_foreach(json_object_get(report, "steps"), i, step)
    {
        tl_text_append(out, "%s", tl_json_text(step, "at"));
        for (size_t k = 0; k < N_COLUMNS; k++) {
            const json_t *value = json_object_get(step, columns[k].name);
            if (json_is_integer(value))
                tl_text_append(out, ",%" JSON_INTEGER_FORMAT, json_integer_value(value));
            else
                tl_text_append(out, ",");
        }
        tl_text_append(out, "\n");
    }
}

/* ---- HTML ---- */

static const char head[] =
    "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width\">\n<style>\n"
    "body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 "
    "1rem }\n"
    "svg { max-width: 100%%; height: auto } h2 { margin-top: 2rem }\n"
    "table { border-collapse: collapse; width: 100%%; font-variant-numeric: tabular-nums }\n"
    "th, td { padding: .2rem .5rem; text-align: left; border-bottom: 1px solid #ccc }\n"
    ".steps th, .steps td { text-align: right } .steps :first-child { text-align: left }\n"
    "thead { display: table-header-group } tr, svg { break-inside: avoid }\n"
    "@media screen and (prefers-color-scheme: dark) { body { background: #16181b; color: #e8eaed } "
    "}\n"
    "@media print { body { margin: 0; max-width: none; font-size: 10pt } }\n"
    "</style>\n";

static void put(const char *text, struct tl_text *out)
{
    for (const char *c = text; *c != '\0'; c++) {
        if (strchr("<>&\"", *c) != NULL)
            tl_text_append(out, "&#%d;", *c);
        else
            tl_text_append(out, "%c", *c);
    }
}

static void put_cell(const char *text, struct tl_text *out)
{
    tl_text_append(out, "<td>");
    put(text, out);
}

static void put_time(const json_t *object, struct tl_text *out)
{
    char text[40];
    tl_terminal_time_of(tl_json_text(object, "at"), text, sizeof(text));
    put_cell(text, out);
}

static void put_changes(const json_t *changes, struct tl_text *out)
{
    const json_t *change;
    size_t i;
    if (json_array_size(changes) == 0)
        return;
    tl_text_append(out, "<h2>Changes</h2>\n<table><thead><tr><th>No.<th>Time<th>Who<th>What<th>"
                        "Change</thead>\n");
    json_array_foreach(changes, i, change)
    {
        struct tl_text words = {0};
        tl_change_describe(change, &words);
        tl_text_append(out, "<tr><td>%zu", i + 1);
        put_time(change, out);
        put_cell(tl_json_text(change, "who"), out);
        put_cell(tl_json_text(change, "what"), out);
        put_cell(tl_xtext(&words), out);
        tl_text_append(out, "\n");
        tl_text_free(&words);
    }
    tl_text_append(out, "</table>\n");
}

static void put_steps(const json_t *steps, struct tl_text *out)
{
    const json_t *step;
    size_t i;
    tl_text_append(out, "<h2>Over time</h2>\n<table class=\"steps\"><thead><tr><th>From");
    for (size_t k = 0; k < N_COLUMNS; k++)
        tl_text_append(out, "<th>%s", columns[k].title);
    tl_text_append(out, "</thead>\n");
    json_array_foreach(steps, i, step)
    {
        tl_text_append(out, "<tr>");
        put_time(step, out);
        for (size_t k = 0; k < N_COLUMNS; k++) {
            bool known = json_is_integer(json_object_get(step, columns[k].name));
            tl_text_append(out, "<td>%s",
                           !known               ? "-"
                           : columns[k].is_wait ? wait_of(step, columns[k].name).text
                                                : count_of(step, columns[k].name).text);
        }
        tl_text_append(out, "\n");
    }
    tl_text_append(out, "</table>\n");
}

void tl_report_html(const json_t *report, const struct tl_series *series, struct tl_text *out)
{
    char when[96];
    struct tl_sentences sentences = {0};
    struct tl_text svg = {0};
    say_when(report, when);
    say_all(report, &sentences);
    tl_text_append(out, head);
    tl_text_append(out, "<title>Queue %s</title></head><body>\n<h1>Queue %s</h1>\n<p>%s</p>\n",
                   tl_json_text(report, "queue"), tl_json_text(report, "queue"), when);
    for (size_t i = 0; i < sentences.n; i++) {
        tl_text_append(out, "<p>");
        put(sentences.texts[i], out);
        tl_text_append(out, "</p>\n");
    }
    tl_chart_svg(series, "The line over time", when, &svg);
    tl_text_append(out, "%s", strstr(tl_xtext(&svg), "<svg"));
    tl_text_free(&svg);
    put_changes(json_object_get(report, "changes"), out);
    put_steps(json_object_get(report, "steps"), out);
    tl_text_append(out, "</body></html>\n");
}
