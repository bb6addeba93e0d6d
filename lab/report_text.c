/* SPDX-License-Identifier: Apache-2.0 */
/* The reports in words for people, from their JSON. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/words/words.h"

#include "lab/report.h"

enum { COLUMNS = 80 };

/* ---- figures ---- */

/* A number of the report, by its path: "waits.median_ms". -1: it is null, or not there. */
static double number_of(const json_t *report, const char *path)
{
    const char *dot = strchr(path, '.');
    const json_t *value = dot != NULL ? json_object_getn(report, path, (size_t)(dot - path))
                                      : json_object_get(report, path);
    if (dot != NULL)
        return number_of(value, dot + 1);
    return json_is_number(value) ? json_number_value(value) : -1;
}

static struct tl_words count_of(const json_t *report, const char *path)
{
    return tl_words_number(number_of(report, path), 0);
}

static struct tl_words time_of(const json_t *report, const char *path)
{
    return tl_words_time((int64_t)number_of(report, path));
}

/* The sum of the numbers at some paths: "fates.served+fates.cut_off"; one after '-' is taken off.
 */
static double sum_of(const json_t *side, const char *paths)
{
    double sum = 0, sign = 1;
    for (const char *at = paths; *at != '\0';) {
        char path[40];
        size_t length = strcspn(at, "+-");
        snprintf(path, sizeof(path), "%.*s", (int)length, at);
        sum += sign * number_of(side, path);
        sign = at[length] == '-' ? -1 : 1;
        at += length + (at[length] != '\0' ? 1 : 0);
    }
    return sum;
}

/* The figures, in the order of the text. */
static const struct figure {
    const char *name;
    const char *rehearsed; /* paths; NULL: only a simulation alone shows it */
    const char *simulated;
    enum { COUNT, TIME, SHARE } kind;
    const char *of; /* a simulation alone says what share of this it is */
} figure_rows[] = {
    {"arrived", "arrived", "arrived", COUNT, NULL},
    {"joined", "joined", "arrived-refused", COUNT, NULL},
    {"refused", "fates.refused", "refused", COUNT, "arrived"},
    {"served", "fates.served+fates.cut_off", "served", COUNT, "arrived"},
    {"...cut off by the session", "fates.cut_off", "cut_off", COUNT, "served"},
    {"gave up, left or no-show", "fates.gave_up+fates.left+fates.no_shows", "gave_up+no_shows",
     COUNT, "arrived"},
    {"...called, and did not come", NULL, "no_shows", COUNT, "arrived"},
    {"...dropped from the line", NULL, "gave_up", COUNT, "arrived"},
    {"still waiting", NULL, "still_waiting", COUNT, "arrived"},
    {"wait: median", "waits.median_ms", "waits.median_ms", TIME, NULL},
    {"wait: nine in ten", "waits.p90_ms", "waits.p90_ms", TIME, NULL},
    {"wait: longest", "waits.longest_ms", "waits.longest_ms", TIME, NULL},
    {"longest line", "longest_line", "longest_line", COUNT, NULL},
    {"...after", "longest_line_at_ms", "longest_line_at_ms", TIME, NULL},
    {"there was a line for", NULL, "line_ms", TIME, NULL},
    {"the line was empty after", "line_empty_from_ms", "line_empty_from_ms", TIME, NULL},
    {"most active at once", "most_active", "most_active", COUNT, NULL},
    {"most on the site at once", "most_on_the_site", "most_on_the_site", COUNT, NULL},
    {"slots empty", NULL, "slots.empty", SHARE, NULL},
    {"...while visitors waited", NULL, "slots.empty_in_line", SHARE, NULL},
    {"...held for no-shows", NULL, "slots.no_shows", SHARE, NULL},
    {"of what the site serves", NULL, "busiest_share_of_tps", SHARE, NULL},
    {"all were gone after", "end_ms", "end_ms", TIME, NULL},
};

static struct tl_words figure_words(const struct figure *figure, const json_t *side,
                                    const char *paths)
{
    double value = sum_of(side, paths);
    return figure->kind == TIME    ? tl_words_time((int64_t)value)
           : figure->kind == SHARE ? tl_words_share(value)
                                   : tl_words_number(value, 0);
}

/* rehearsed NULL: the simulation alone, with shares. */
static void write_figures(const json_t *rehearsed, const json_t *simulated, struct tl_text *out)
{
    if (rehearsed != NULL)
        tl_text_append(out, "  %-28s  %14s  %14s\n", "", "rehearsed", "simulated");
    for (size_t i = 0; i < sizeof(figure_rows) / sizeof(figure_rows[0]); i++) {
        const struct figure *row = &figure_rows[i];
        if (rehearsed != NULL ? row->rehearsed == NULL
                              : row->kind == SHARE && sum_of(simulated, row->simulated) < 0)
            continue;
        tl_text_append(out, "  %-28s", row->name);
        if (rehearsed != NULL)
            tl_text_append(out, "  %14s", figure_words(row, rehearsed, row->rehearsed).text);
        tl_text_append(out, "  %14s", figure_words(row, simulated, row->simulated).text);
        double all = rehearsed == NULL && row->of != NULL ? number_of(simulated, row->of) : 0;
        if (all > 0)
            tl_text_append(out, "  %5s",
                           tl_words_share(sum_of(simulated, row->simulated) / all).text);
        tl_text_append(out, "\n");
    }
}

static void write_lane(const json_t *lane, const char *source, struct tl_text *out)
{
    char name[TL_LANE_NAME_MAX + 24];
    const char *text = json_string_value(json_object_get(lane, "lane"));
    double weight = number_of(lane, "weight");
    if (weight >= 0)
        snprintf(name, sizeof(name), "%.15s, weight %.0f", text, weight);
    else
        snprintf(name, sizeof(name), "%.24s", text);
    tl_text_append(out, "  %-24s %-10s %9.0f %9.0f %11s %11s\n", name, source,
                   number_of(lane, "admitted"), number_of(lane, "passed_by"),
                   time_of(lane, "waits.median_ms").text, time_of(lane, "waits.p90_ms").text);
}

static void write_lane_sentences(const json_t *lane, struct tl_text *out)
{
    const char *name = json_string_value(json_object_get(lane, "lane"));
    if (number_of(lane, "promises") > 0)
        tl_text_append(out,
                       "Lane %s: told to wait %s, waited %s (medians); the range came true for "
                       "%s of %s.\n",
                       name, time_of(lane, "told_ms").text, time_of(lane, "true_ms").text,
                       count_of(lane, "promises_kept").text, count_of(lane, "promises").text);
    if (json_is_true(json_object_get(lane, "starved")))
        tl_text_append(out,
                       "Lane %s starved: %.0f visitors of other lanes were admitted in a row "
                       "while it had some.%s\n",
                       name, number_of(lane, "passed_by"),
                       number_of(lane, "weight") < 0
                           ? "\n    Without lane_weights a lane is served only while those before "
                             "it are empty: set lane_weights."
                           : "");
}

/* The lanes beside each other, if there are several, and what to do about one that starved.
 * rehearsed may be NULL; its lanes without visitors are left out. */
static void write_lanes(const json_t *rehearsed, const json_t *simulated, struct tl_text *out)
{
    const json_t *seen = json_object_get(rehearsed, "lanes");
    const json_t *planned = json_object_get(simulated, "lanes");
    const size_t n = json_array_size(planned);
    if (n < 2)
        return;
    tl_text_append(out, "\n  %-24s %-10s %9s %9s %11s %11s\n", "lane", "", "admitted", "passed by",
                   "median", "nine in ten");
    for (size_t i = 0; i < n; i++) {
        const json_t *lane = json_array_get(seen, i);
        if (lane != NULL && number_of(lane, "arrived") == 0)
            continue;
        if (lane != NULL)
            write_lane(lane, "rehearsed", out);
        write_lane(json_array_get(planned, i), "simulated", out);
    }
    tl_text_append(out, "\n");
    for (size_t i = 0; i < n; i++)
        write_lane_sentences(json_array_get(seen != NULL ? seen : planned, i), out);
}

/* ---- plan ---- */

/* Words of a sentence, in lines of at most COLUMNS, each after the indent. */
static void write_wrapped(const char *sentence, const char *first, const char *indent,
                          struct tl_text *out)
{
    size_t column = strlen(first);
    tl_text_append(out, "%s", first);
    for (const char *at = sentence; *at != '\0';) {
        size_t length = strcspn(at, " ");
        bool begins = at == sentence;
        if (!begins && column + 1 + length > COLUMNS) {
            tl_text_append(out, "\n%s", indent);
            column = strlen(indent);
            begins = true;
        }
        tl_text_append(out, "%s%.*s", begins ? "" : " ", (int)length, at);
        column += length + (begins ? 0 : 1);
        at += length + strspn(at + length, " ");
    }
    tl_text_append(out, "\n");
}

/* A row of the table; `more` may be NULL. */
static void write_wait(struct tl_text *out, const char *ahead, const char *wait, const char *more)
{
    if (more != NULL)
        tl_text_append(out, "  %13s  %-14s  %s\n", ahead, wait, more);
    else
        tl_text_append(out, "  %13s  %s\n", ahead, wait);
}

static void write_plan(const json_t *plan, struct tl_text *out)
{
    size_t i;
    json_t *entry;
    double admitted = number_of(plan, "admitted_per_second");
    double least = number_of(plan, "admitted_per_second_without_complete");
    bool differ = least < admitted; /* a rate alone does not depend on how sessions end */
    tl_text_append(out, "Formulas\n");
    json_array_foreach(json_object_get(plan, "formulas"), i, entry)
    {
        tl_text_append(out, "  %-25s %s\n", json_string_value(json_object_get(entry, "name")),
                       json_string_value(json_object_get(entry, "formula")));
    }
    tl_text_append(out, "\nWaits, while the site is full and nobody gives up\n");
    write_wait(out, "IN FRONT", "WAIT",
               differ ? "WITHOUT `complete`, ALL UNTIL session_ttl" : NULL);
    write_wait(out, "per second", tl_words_rate(admitted).text,
               differ ? tl_words_rate(least).text : NULL);
    json_array_foreach(json_object_get(plan, "waits"), i, entry)
    {
        write_wait(out, count_of(entry, "ahead").text, time_of(entry, "wait_ms").text,
                   differ ? time_of(entry, "wait_without_complete_ms").text : NULL);
    }
    const json_t *size = json_object_get(plan, "size");
    tl_text_append(out, "\nSize\n");
    if (size == NULL) {
        tl_text_append(out, "  workers and memory: add --visitors N\n");
        return;
    }
    tl_text_append(out,
                   "  joins                     %s per second when most come\n"
                   "  worker processes          %s on all machines: %s pages each\n"
                   "                            (http.max_connections), or half of %s joins\n"
                   "                            per second, measured on one core\n"
                   "  memory of Redis           %s MB: twice %d bytes per visitor\n"
                   "  masters of Redis          %s: half of %s joins per second on each,\n"
                   "                            and %d us for each visitor admitted; more\n"
                   "                            than one: a cluster, of at least 3\n"
                   "  sources                   docs/contributors/benchmarks.md,\n"
                   "                            docs/operators/redis.md\n",
                   tl_words_number(ceil(number_of(size, "joins_per_second")), 0).text,
                   count_of(size, "worker_processes").text,
                   tl_words_whole(TL_PLAN_PAGES_PER_PROCESS).text,
                   tl_words_whole(TL_PLAN_JOINS_PER_PROCESS).text,
                   tl_words_number(ceil(number_of(size, "redis_bytes") / 1e6), 0).text,
                   TL_PLAN_REDIS_BYTES, count_of(size, "redis_masters").text,
                   tl_words_whole(TL_PLAN_JOINS_PER_MASTER).text, TL_PLAN_REDIS_US);
}

void tl_plan_report_text(const struct tl_plan_report *report, const json_t *json,
                         struct tl_text *out)
{
    const json_t *simulation = json_object_get(json, "simulation");
    if (report->simulation != NULL) {
        tl_text_append(out, "Simulation\n");
        write_wrapped(report->visitors, "  ", "  ", out);
        if (report->settings->opens_at_ms > 0)
            tl_text_append(out, "  The queue opens after %s.\n",
                           time_of(simulation, "opens_after_ms").text);
        tl_text_append(out, "\n");
        tl_chart_text(&report->simulation->series, report->colour, out);
        tl_text_append(out, "\n");
        write_figures(NULL, simulation, out);
        write_lanes(NULL, simulation, out);
        tl_text_append(out, "\n");
    }
    if (report->plan != NULL)
        write_plan(json_object_get(json, "plan"), out);
    if (report->warnings->n > 0)
        tl_text_append(out, "\nWarnings\n");
    for (size_t i = 0; i < report->warnings->n; i++)
        write_wrapped(report->warnings->texts[i], "  - ", "    ", out);
    tl_text_append(out, "\nConfiguration\n\n");
    tl_plan_report_yaml(report->plan != NULL ? &report->plan->settings : report->settings, out);
}

/* ---- rehearse ---- */

static void write_reasons(const char *title, const json_t *reasons, struct tl_text *out)
{
    size_t i;
    json_t *reason;
    json_array_foreach(reasons, i, reason)
    {
        const char *name = json_string_value(json_object_get(reason, "reason"));
        const char *advice = json_string_value(json_object_get(reason, "advice"));
        tl_text_append(out, "%s%s times %s\n", i == 0 ? title : "", count_of(reason, "count").text,
                       name != NULL ? name : "something that is not UTF-8");
        if (advice != NULL)
            tl_text_append(out, "    %s\n", advice);
    }
}

static void write_kept(const struct tl_queue_settings *settings, const json_t *rehearsed,
                       struct tl_text *out)
{
    double promises = number_of(rehearsed, "promises");
    if (settings->policy != TL_POLICY_RATE)
        tl_text_append(out, "Capacity: %s at most, as visitors were told; the settings allow %s.\n",
                       count_of(rehearsed, "most_active").text,
                       tl_words_whole(settings->capacity).text);
    if (settings->policy != TL_POLICY_COUNTER)
        tl_text_append(
            out, "Admissions in %s: %s at most, %s on average; the settings allow %s%s%s.\n",
            tl_words_time(settings->rate.every_ms).text,
            count_of(rehearsed, "admissions_per_period.most").text,
            tl_words_number(number_of(rehearsed, "admissions_per_period.average"), 1).text,
            tl_words_whole(settings->rate.admit).text,
            settings->rate.burst > 0 ? " and a burst of " : "",
            settings->rate.burst > 0 ? tl_words_whole(settings->rate.burst).text : "");
    if (promises > 0)
        tl_text_append(out,
                       "The page's range of the wait came true for %s of %s (%.0f %%; the first "
                       "range that each was told).\n",
                       count_of(rehearsed, "promises_kept").text,
                       count_of(rehearsed, "promises").text,
                       100 * number_of(rehearsed, "promises_kept") / promises);
}

void tl_rehearse_report_text(const struct tl_rehearse_report *report, const json_t *json,
                             struct tl_text *out)
{
    const bool stopped = report->rehearsal->stopped;
    const json_t *rehearsed = json_object_get(json, "rehearsed");
    const json_t *simulated = json_object_get(json, "simulated");
    tl_text_append(out, "Rehearsal of %s, with the settings %s, over %s\n  %s\n", report->queue,
                   report->source, report->target, report->visitors);
    if (report->speed > 1)
        tl_text_append(out,
                       "  %llu times faster: the times of the scratch queue were divided by "
                       "that, and those below\n  are multiplied with it; so %s of the machine "
                       "count as %s of the sale\n",
                       (unsigned long long)report->speed, tl_words_time(100).text,
                       tl_words_time(100 * (int64_t)report->speed).text);
    if (stopped)
        tl_text_append(out, "  It was stopped after %s: these are the figures up to then\n",
                       time_of(rehearsed, "end_ms").text);
    tl_text_append(out, "\n");
    write_figures(rehearsed, simulated, out);
    write_lanes(rehearsed, simulated, out);
    tl_text_append(out, "\n");
    write_kept(report->settings, rehearsed, out);
    tl_text_append(out, "Requests: %s.\n", count_of(rehearsed, "requests").text);
    write_reasons("Refused:\n", json_object_get(rehearsed, "refused"), out);
    write_reasons("Errors over HTTP:\n", json_object_get(rehearsed, "errors"), out);
    if (report->rehearsal->errors.n == 0)
        tl_text_append(out, "Errors over HTTP: none.\n");
    tl_text_append(out, "\n");
    for (size_t i = 0; i < report->broken->n; i++)
        tl_text_append(out, "NOT KEPT: %s.\n", report->broken->texts[i]);
    if (report->broken->n == 0)
        tl_text_append(out, "What the settings promise was kept%s.\n",
                       stopped ? " until then" : "");
}
