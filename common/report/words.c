/* SPDX-License-Identifier: Apache-2.0 */
/* A report in words and as a curve. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/units.h"
#include "common/report/report.h"
#include "common/words/json.h"

static const struct tl_words unknown = {"-"};

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

static struct tl_words percent_of(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    return json_is_number(value) ? tl_words_share(json_number_value(value) / 100) : unknown;
}

static struct tl_words number_of(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    return json_is_number(value) ? tl_words_number(json_number_value(value), 1) : unknown;
}

static int64_t time_of(const json_t *object, const char *name)
{
    int64_t unix_ms = 0;
    (void)tl_time_parse(tl_json_text(object, name), &unix_ms, NULL);
    return unix_ms;
}

void tl_report_name(const json_t *report, char name[TL_QUEUE_NAME_MAX + 16])
{
    char opened[40];
    tl_terminal_time_of(tl_json_text(report, "opened"), opened, sizeof(opened));
    snprintf(name, TL_QUEUE_NAME_MAX + 16, "%.*s %.10s", TL_QUEUE_NAME_MAX,
             tl_json_text(report, "queue"), opened);
}

void tl_report_when(const json_t *report, char text[96])
{
    char from[40], until[40];
    tl_terminal_time_of(tl_json_text(report, "from"), from, sizeof(from));
    tl_terminal_time_of(tl_json_text(report, "until"), until, sizeof(until));
    snprintf(text, 96, "%s to %s", from, until);
}

/* ---- sentences ---- */

static void say_capacity(const json_t *capacity, struct tl_sentences *sentences)
{
    const json_t *used = json_object_get(capacity, "used_while_waiting");
    if (json_is_number(used))
        tl_say(sentences,
               "Capacity used while people waited (%s): %s; on average %s places were free.",
               tl_words_time(1000 * tl_json_number(capacity, "waiting_seconds")).text,
               tl_words_share(json_number_value(used)).text,
               number_of(capacity, "free_while_waiting").text);
}

static void say_estimates(const json_t *estimates, struct tl_sentences *sentences)
{
    if (tl_json_count(estimates, "judged") > 0)
        tl_say(sentences,
               "Waits that were told, and came true: %s. Within the range %s, before it %s, after "
               "it %s; off by %s on average.",
               count_of(estimates, "judged").text, percent_of(estimates, "inside_percent").text,
               count_of(estimates, "early").text, count_of(estimates, "late").text,
               percent_of(estimates, "error_percent").text);
}

void tl_report_say(const json_t *report, struct tl_sentences *sentences)
{
    const json_t *totals = json_object_get(report, "totals");
    const json_t *waits = json_object_get(report, "waits"), *gap;
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
    if (tl_json_count(totals, "unknown") > 0)
        tl_say(sentences, "What became of them is not known: %s.",
               count_of(totals, "unknown").text);
    if (json_is_integer(json_object_get(waits, "p50_ms")))
        tl_say(sentences,
               "Waits of those admitted: half up to %s, 90 %% up to %s, 99 %% up to %s, "
               "the longest %s.",
               wait_of(waits, "p50_ms").text, wait_of(waits, "p90_ms").text,
               wait_of(waits, "p99_ms").text, wait_of(waits, "longest_ms").text);
    say_estimates(json_object_get(report, "estimates"), sentences);
    say_capacity(json_object_get(report, "capacity"), sentences);
    json_array_foreach(json_object_get(report, "gaps"), i, gap)
    {
        char since[40], until[40];
        tl_terminal_time_of(tl_json_text(gap, "since"), since, sizeof(since));
        tl_terminal_time_of(tl_json_text(gap, "until"), until, sizeof(until));
        tl_say(sentences, "The record has a gap from %s to %s: these figures may lack something.",
               since, until);
    }
}

/* ---- figures ---- */

static struct tl_words share_of(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    return json_is_number(value) ? tl_words_share(json_number_value(value)) : unknown;
}

void tl_report_figures(const json_t *report, struct tl_report_figure figures[TL_REPORT_FIGURES])
{
    static const struct {
        const char *label, *of, *name;
        struct tl_words (*write)(const json_t *object, const char *name);
    } rows[TL_REPORT_FIGURES] = {
        {"Arrived", "totals", "arrived", count_of},
        {"Admitted", "totals", "admitted", count_of},
        {"Gave up", "totals", "gave_up", count_of},
        {"No-shows", "totals", "no_shows", count_of},
        {"Completed", "totals", "completed", count_of},
        {"Wait: half", "waits", "p50_ms", wait_of},
        {"Wait: 90 %", "waits", "p90_ms", wait_of},
        {"Wait: 99 %", "waits", "p99_ms", wait_of},
        {"Longest wait", "waits", "longest_ms", wait_of},
        {"Capacity used while people waited", "capacity", "used_while_waiting", share_of},
        {"Free meanwhile, on average", "capacity", "free_while_waiting", number_of},
        {"Waits within the range told", "estimates", "inside_percent", percent_of},
        {"Estimates off by, on average", "estimates", "error_percent", percent_of},
    };
    for (size_t i = 0; i < TL_REPORT_FIGURES; i++)
        figures[i] = (struct tl_report_figure){
            rows[i].label, rows[i].write(json_object_get(report, rows[i].of), rows[i].name)};
}

static const struct tl_report_column columns[] = {
    {"arrived", "Arrived", false, true},    {"admitted", "Admitted", false, true},
    {"gave_up", "Gave up", false, true},    {"no_shows", "No-shows", false, true},
    {"waiting", "Waiting", false, false},   {"active", "Active", false, false},
    {"capacity", "Capacity", false, false}, {"p50_ms", "Wait: half", true, true},
    {"p90_ms", "90 %", true, true},         {"p99_ms", "99 %", true, true},
};

const struct tl_report_column *tl_report_columns(size_t *n)
{
    *n = sizeof(columns) / sizeof(columns[0]);
    return columns;
}

struct tl_words tl_report_cell(const json_t *row, const struct tl_report_column *column)
{
    if (!json_is_integer(json_object_get(row, column->name)))
        return unknown;
    return column->is_wait ? wait_of(row, column->name) : count_of(row, column->name);
}

/* ---- the curve ---- */

/* Of steps that begin at `origin_ms`, `together` in one stretch. */
static void fill(const json_t *report, int64_t origin_ms, struct tl_series *series)
{
    const json_t *steps = json_object_get(report, "steps"), *step;
    const json_t *changes = json_object_get(report, "changes");
    size_t i;
    json_array_foreach(steps, i, step)
    {
        const int64_t at = (time_of(step, "at") - origin_ms) / series->width_ms;
        if (at < 0 || at >= (int64_t)series->n)
            continue;
        struct tl_series_point *point = &series->points[at];
        const uint64_t waiting = tl_json_count(step, "waiting");
        const uint64_t active = tl_json_count(step, "active");
        point->waiting = waiting > point->waiting ? waiting : point->waiting;
        point->active = active > point->active ? active : point->active;
    }
    for (i = 0; i < json_array_size(changes) && i < TL_SERIES_MARKS; i++)
        series->marks_ms[series->n_marks++] = time_of(json_array_get(changes, i), "at") - origin_ms;
}

/* The end of the last step. */
static int64_t end_of(const json_t *report)
{
    return time_of(report, "from") + 1000 * tl_json_number(report, "step_seconds") *
                                         (int64_t)json_array_size(json_object_get(report, "steps"));
}

void tl_report_series(const json_t *report, const json_t *other, struct tl_series *series,
                      struct tl_series *other_series)
{
    const json_t *const reports[] = {report, other};
    struct tl_series *const made[] = {series, other_series};
    const size_t n = other != NULL ? 2 : 1;
    int64_t step_ms = 1000, begin_ms = 0, end_ms = 1; /* from the opening on */
    for (size_t i = 0; i < n; i++) {
        const int64_t opened_ms = time_of(reports[i], "opened");
        const int64_t step = 1000 * tl_json_number(reports[i], "step_seconds");
        const int64_t begin = time_of(reports[i], "from") - opened_ms;
        const int64_t end = end_of(reports[i]) - opened_ms;
        step_ms = step > step_ms ? step : step_ms;
        begin_ms = begin < begin_ms ? begin : begin_ms;
        end_ms = end > end_ms ? end : end_ms;
    }
    const int64_t steps = (end_ms - begin_ms + step_ms - 1) / step_ms;
    const int64_t width_ms = step_ms * (1 + (steps - 1) / TL_SERIES_MOST);
    for (size_t i = 0; i < n; i++) {
        *made[i] =
            (struct tl_series){.width_ms = width_ms,
                               .begin_ms = n > 1 ? begin_ms : 0, /* of one, its first step is 0 */
                               .n = (size_t)((end_ms - begin_ms + width_ms - 1) / width_ms)};
        fill(reports[i], time_of(reports[i], "opened") + begin_ms, made[i]);
    }
}
