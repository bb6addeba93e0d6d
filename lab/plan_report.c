/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/base/units.h"

#include "lab/memory.h"
#include "lab/report.h"

enum { COLUMNS = 80 };

static const char *const policies[] = {
    [TL_POLICY_COUNTER] = "counter", [TL_POLICY_RATE] = "rate", [TL_POLICY_BOTH] = "both"};

/* So that a rate below one per second is seen, too. */
static struct tl_words per_second(double value)
{
    return tl_words_number(value, value < 1 ? 6 : 2);
}

static struct tl_words setting(int64_t ms)
{
    struct tl_words words = {""};
    tl_duration_format(ms, words.text, sizeof(words.text));
    return words;
}

/* ---- the configuration ---- */

void tl_plan_report_yaml(const struct tl_plan_input *input, const struct tl_plan *plan,
                         struct tl_text *out)
{
    tl_text_append(out, "queues:\n  sale:\n    policy: %s\n", policies[input->policy]);
    if (input->policy != TL_POLICY_RATE)
        tl_text_append(out, "    capacity: %" PRIu64 "\n", plan->capacity);
    if (input->policy != TL_POLICY_COUNTER) {
        tl_text_append(out, "    rate: { admit: %" PRIu64 ", every: %s, shape: %s", plan->admit,
                       setting(input->period_ms).text, input->lumps ? "lumps" : "smooth");
        if (!input->lumps)
            tl_text_append(out, ", burst: %" PRIu64, input->burst);
        tl_text_append(out, " }\n");
    }
    tl_text_append(out, "    session_ttl: %s\n    claim_ttl: %s\n    waiting_ttl: %s\n",
                   setting(plan->session_ttl_ms).text, setting(plan->claim_ttl_ms).text,
                   setting(plan->waiting_ttl_ms).text);
}

/* ---- JSON ---- */

static void add(json_t *steps, const char *name, double value, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static void add(json_t *steps, const char *name, double value, const char *format, ...)
{
    char formula[120];
    va_list args;
    va_start(args, format);
    vsnprintf(formula, sizeof(formula), format, args);
    va_end(args);
    json_array_append_new(
        steps, json_pack("{s:s, s:s, s:f}", "name", name, "formula", formula, "value", value));
}

/* tps x SECONDS / calls. */
static void add_share_of_time(json_t *steps, const struct tl_plan_report *report, const char *name,
                              double seconds, double value)
{
    add(steps, name, value, "%s x %s s / %s = %s", tl_words_number(report->input->tps, 2).text,
        tl_words_number(seconds, 3).text, tl_words_number(report->plan->calls_used, 4).text,
        tl_words_number(value, 0).text);
}

static json_t *formulas_json(const struct tl_plan_report *report)
{
    const struct tl_plan_input *input = report->input;
    const struct tl_plan *plan = report->plan;
    double session_s = (double)input->session_ms / 1000;
    double reserve = 1 - input->safety;
    json_t *steps = json_array();
    if (input->calls_per_ms > 0)
        add(steps, "requests of a session", plan->calls, "%s x %s s / %s s = %s",
            tl_words_number(input->calls, 4).text, tl_words_number(session_s, 3).text,
            tl_words_number((double)input->calls_per_ms / 1000, 0).text,
            tl_words_number(plan->calls, 4).text);
    add(steps, "with repeats", plan->calls_used, "%s x (1 + %s) = %s",
        tl_words_number(plan->calls, 4).text, tl_words_number(input->failure_rate, 4).text,
        tl_words_number(plan->calls_used, 4).text);
    add(steps, "visitors per second", plan->per_second, "%s / %s = %s",
        tl_words_number(input->tps, 2).text, tl_words_number(plan->calls_used, 4).text,
        per_second(plan->per_second).text);
    add_share_of_time(steps, report, "visitors per minute", 60, round(plan->per_second * 60));
    add(steps, "session_ttl", (double)plan->session_ttl_ms, "%s s x (1 + %s) = %s s",
        tl_words_number(session_s, 3).text, tl_words_number(input->margin, 4).text,
        tl_words_number((double)plan->session_ttl_ms / 1000, 3).text);
    /* What becomes a limit is rounded down, what only describes to the nearest. */
    add_share_of_time(steps, report, "on the site at once", session_s,
                      floor(plan->at_once * (1 + 1e-12)));
    add_share_of_time(steps, report, "...all until session_ttl",
                      (double)plan->session_ttl_ms / 1000, round(plan->at_once_most));
    if (input->policy != TL_POLICY_RATE)
        add(steps, "capacity", (double)plan->safe_capacity, "%s x (1 - %s) = %s, rounded down: %s",
            tl_words_number(floor(plan->at_once * (1 + 1e-12)), 0).text,
            tl_words_number(input->safety, 4).text,
            tl_words_number(floor(plan->at_once * reserve * (1 + 1e-12)), 0).text,
            tl_words_whole(plan->safe_capacity).text);
    if (input->policy == TL_POLICY_COUNTER)
        return steps;
    add_share_of_time(steps, report, "visitors per period", (double)input->period_ms / 1000,
                      floor(plan->per_period * (1 + 1e-12)));
    add(steps, "rate.admit", (double)plan->safe_admit, "%s x (1 - %s) = %s, rounded down: %s",
        tl_words_number(floor(plan->per_period * (1 + 1e-12)), 0).text,
        tl_words_number(input->safety, 4).text,
        tl_words_number(floor(plan->per_period * reserve * (1 + 1e-12)), 0).text,
        tl_words_whole(plan->safe_admit).text);
    return steps;
}

/* The lengths of the tables of waits; 0 after the last. */
static uint64_t line_of(const struct tl_plan_report *report, size_t i)
{
    static const uint64_t lines[] = {1000, 10000, 100000, 1000000};
    enum { N_LINES = sizeof(lines) / sizeof(lines[0]) };
    uint64_t visitors = report->input->crowd.visitors;
    if (i < N_LINES)
        return lines[i];
    for (size_t k = 0; k < N_LINES; k++)
        visitors = visitors == lines[k] ? 0 : visitors;
    return i == N_LINES ? visitors : 0;
}

static json_t *waits_json(const struct tl_plan_report *report)
{
    json_t *list = json_array();
    for (size_t i = 0; line_of(report, i) > 0; i++) {
        uint64_t ahead = line_of(report, i);
        json_array_append_new(
            list, json_pack("{s:I, s:I, s:I}", "ahead", (json_int_t)ahead, "wait_ms",
                            (json_int_t)tl_plan_wait_ms(ahead, report->plan->admitted),
                            "wait_without_complete_ms",
                            (json_int_t)tl_plan_wait_ms(ahead, report->plan->admitted_least)));
    }
    return list;
}

static json_t *settings_json(const struct tl_simulation_settings *settings)
{
    json_t *capacity =
        settings->policy != TL_POLICY_RATE ? json_integer((json_int_t)settings->capacity) : NULL;
    json_t *rate =
        settings->policy == TL_POLICY_COUNTER
            ? NULL
            : json_pack("{s:I, s:I, s:s, s:I}", "admit", (json_int_t)settings->admit, "every_ms",
                        (json_int_t)settings->every_ms, "shape",
                        settings->lumps ? "lumps" : "smooth", "burst", (json_int_t)settings->burst);
    return json_pack("{s:s, s:o*, s:o*, s:I, s:I, s:I}", "policy", policies[settings->policy],
                     "capacity", capacity, "rate", rate, "session_ttl_ms",
                     (json_int_t)settings->session_limit_ms, "claim_ttl_ms",
                     (json_int_t)settings->claim_ttl_ms, "waiting_ttl_ms",
                     (json_int_t)settings->waiting_ttl_ms);
}

static json_t *plan_json(const struct tl_plan_report *report)
{
    const struct tl_plan *plan = report->plan;
    struct tl_simulation_settings settings;
    struct tl_text yaml = {0};
    tl_plan_report_yaml(report->input, plan, &yaml);
    if (yaml.failed)
        tl_no_memory();
    tl_simulation_settings_planned(report->input, plan, &settings);
    json_t *size =
        plan->processes == 0
            ? NULL
            : json_pack("{s:f, s:I, s:I}", "joins_per_second", plan->peak_joins, "worker_processes",
                        (json_int_t)plan->processes, "redis_bytes", (json_int_t)plan->redis_bytes);
    json_t *json = json_pack(
        "{s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:o, s:o, s:o, s:o*, s:s}",
        "requests_per_session", plan->calls_used, "visitors_per_second", plan->per_second,
        "visitors_per_period", plan->per_period, "visitors_at_once", plan->at_once,
        "visitors_at_once_until_session_ttl", plan->at_once_most, "admitted_per_second",
        plan->admitted, "admitted_per_second_without_complete", plan->admitted_least, "safety",
        report->input->safety, "settings", settings_json(&settings), "formulas",
        formulas_json(report), "waits", waits_json(report), "size", size, "yaml", yaml.data);
    tl_text_free(&yaml);
    return json;
}

static json_t *series_json(const struct tl_series *series)
{
    json_t *list = json_array();
    for (size_t i = 0; i < series->n; i++) {
        const struct tl_series_point *point = &series->points[i];
        json_array_append_new(
            list, json_pack("{s:I, s:I, s:I, s:I, s:I}", "at_ms", (json_int_t)i * series->width_ms,
                            "waiting", (json_int_t)point->waiting, "active",
                            (json_int_t)point->active, "arrived", (json_int_t)point->arrived,
                            "admitted", (json_int_t)point->admitted));
    }
    return list;
}

/* The share of the site's throughput that the busiest moment took; 0 when it is not known. */
static double busiest(const struct tl_plan_report *report)
{
    if (report->plan == NULL)
        return 0;
    return (double)report->simulation->most_present * report->plan->calls_used /
           ((double)report->input->session_ms / 1000) / report->input->tps;
}

static json_t *simulation_json(const struct tl_plan_report *report)
{
    const struct tl_simulation *sim = report->simulation;
    json_t *waits =
        json_pack("{s:I, s:I, s:I}", "median_ms", (json_int_t)sim->wait_median_ms, "most_ms",
                  (json_int_t)sim->wait_most_ms, "longest_ms", (json_int_t)sim->wait_longest_ms);
    json_t *slots = report->settings.policy == TL_POLICY_RATE
                        ? NULL
                        : json_pack("{s:f, s:f, s:f}", "empty", sim->slots_empty, "empty_in_line",
                                    sim->slots_empty_in_line, "no_shows", sim->slots_no_shows);
    json_t *lanes = json_array();
    for (unsigned lane = 0; lane < report->settings.lanes.n; lane++)
        json_array_append_new(lanes,
                              tl_report_lane(&report->settings.lanes, lane, &sim->lanes[lane]));
    json_t *empty_from =
        sim->last_empty_ms >= 0 ? json_integer((json_int_t)sim->last_empty_ms) : NULL;
    return json_pack(
        "{s:o, s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o*, s:o*, s:I, "
        "s:I, s:o*, s:o, s:o}",
        "visitors", tl_report_text(report->visitors), "settings", settings_json(&report->settings),
        "arrived", (json_int_t)sim->arrived, "served", (json_int_t)sim->served, "no_shows",
        (json_int_t)sim->no_shows, "gave_up", (json_int_t)sim->gave_up, "refused",
        (json_int_t)sim->refused, "still_waiting", (json_int_t)sim->waiting, "cut_off",
        (json_int_t)sim->cut_off, "longest_line", (json_int_t)sim->longest_line,
        "longest_line_at_ms", (json_int_t)sim->longest_line_ms, "most_active",
        (json_int_t)sim->most_active, "most_on_the_site", (json_int_t)sim->most_present, "waits",
        waits, "slots", slots, "line_empty_from_ms", empty_from, "line_ms",
        (json_int_t)sim->line_ms, "end_ms", (json_int_t)sim->end_ms, "busiest_share_of_tps",
        report->plan != NULL ? json_real(busiest(report)) : NULL, "series",
        series_json(&sim->series), "lanes", lanes);
}

json_t *tl_plan_report_json(const struct tl_plan_report *report)
{
    json_t *warnings = json_array();
    for (size_t i = 0; i < report->warnings->n; i++)
        json_array_append_new(warnings, json_string(report->warnings->texts[i]));
    json_t *plan = report->plan != NULL ? plan_json(report) : json_null();
    json_t *simulation = report->simulation != NULL ? simulation_json(report) : json_null();
    return json_pack("{s:o, s:o, s:o}", "plan", plan, "simulation", simulation, "warnings",
                     warnings);
}

/* ---- text ---- */

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

static void write_settings(const struct tl_simulation_settings *settings, struct tl_text *out)
{
    struct tl_text sentence = {0};
    tl_text_append(&sentence, "policy %s; ", policies[settings->policy]);
    if (settings->policy != TL_POLICY_RATE)
        tl_text_append(&sentence, "capacity %s; ", tl_words_whole(settings->capacity).text);
    if (settings->policy != TL_POLICY_COUNTER)
        tl_text_append(&sentence, "%s admitted every %s, %s, burst %s; ",
                       tl_words_whole(settings->admit).text, setting(settings->every_ms).text,
                       settings->lumps ? "in lumps" : "smooth",
                       tl_words_whole(settings->lumps ? 0 : settings->burst).text);
    tl_text_append(&sentence, "sessions up to %s, claim_ttl %s, waiting_ttl %s",
                   setting(settings->session_limit_ms).text, setting(settings->claim_ttl_ms).text,
                   setting(settings->waiting_ttl_ms).text);
    if (settings->opens_ms > 0)
        tl_text_append(&sentence, "; opens after %s", setting(settings->opens_ms).text);
    if (sentence.failed)
        tl_no_memory();
    write_wrapped(sentence.data, "  settings        ", "                  ", out);
    tl_text_free(&sentence);
}

/* A count, and its share of another one. */
static void write_count(const json_t *sim, const char *name, const char *path, const char *of,
                        const char *more, struct tl_text *out)
{
    double count = tl_report_number(sim, path), all = tl_report_number(sim, of);
    tl_text_append(out, "  %-15s %11s  %5s%s%s\n", name, tl_report_count(sim, path).text,
                   tl_words_share(all > 0 ? count / all : 0).text, more[0] != '\0' ? "  " : "",
                   more);
}

static void write_simulation(const struct tl_plan_report *report, const json_t *sim,
                             struct tl_text *out)
{
    tl_text_append(out, "Simulation\n");
    write_wrapped(report->visitors, "  visitors        ", "                  ", out);
    write_settings(&report->settings, out);
    tl_text_append(out, "\n");
    tl_chart_text(&report->simulation->series, report->colour, out);
    tl_text_append(out, "\n  %-15s %11s\n", "arrived", tl_report_count(sim, "arrived").text);
    write_count(sim, "served", "served", "arrived", "", out);
    write_count(sim, "no-shows", "no_shows", "arrived", "called, and did not come", out);
    write_count(sim, "gave up", "gave_up", "arrived", "dropped from the line", out);
    if (report->settings.max_waiting > 0)
        write_count(sim, "refused", "refused", "arrived", "by max_waiting", out);
    write_count(sim, "still waiting", "still_waiting", "arrived", "", out);
    write_count(sim, "cut off", "cut_off", "served", "of the sessions, at session_ttl", out);
    tl_text_append(
        out,
        "  longest line    %11s  after %s\n"
        "  waits           median %s, longest %s;\n"
        "                  19 of 20 up to %s\n",
        tl_report_count(sim, "longest_line").text, tl_report_time(sim, "longest_line_at_ms").text,
        tl_report_time(sim, "waits.median_ms").text, tl_report_time(sim, "waits.longest_ms").text,
        tl_report_time(sim, "waits.most_ms").text);
    tl_report_lanes(NULL, json_object_get(sim, "lanes"), out);
    if (tl_report_number(sim, "line_empty_from_ms") >= 0)
        tl_text_append(out, "  line empty      for good after %s; there was a line for %s\n",
                       tl_report_time(sim, "line_empty_from_ms").text,
                       tl_report_time(sim, "line_ms").text);
    else
        tl_text_append(out, "  line empty      never for good; there was a line for %s\n",
                       tl_report_time(sim, "line_ms").text);
    tl_text_append(out, "  most at once    slots taken: %s, visitors on the site: %s\n",
                   tl_report_count(sim, "most_active").text,
                   tl_report_count(sim, "most_on_the_site").text);
    if (json_object_get(sim, "slots") != NULL)
        tl_text_append(out,
                       "  slots empty     %s of the time, %s while visitors waited;\n"
                       "                  held for no-shows: %s (opening to last admission)\n",
                       tl_words_share(tl_report_number(sim, "slots.empty")).text,
                       tl_words_share(tl_report_number(sim, "slots.empty_in_line")).text,
                       tl_words_share(tl_report_number(sim, "slots.no_shows")).text);
    if (report->plan != NULL)
        tl_text_append(out, "  requests        at most %s of what the site serves\n",
                       tl_words_share(tl_report_number(sim, "busiest_share_of_tps")).text);
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
    double admitted = tl_report_number(plan, "admitted_per_second");
    double least = tl_report_number(plan, "admitted_per_second_without_complete");
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
    write_wait(out, "per second", per_second(admitted).text,
               differ ? per_second(least).text : NULL);
    json_array_foreach(json_object_get(plan, "waits"), i, entry)
    {
        write_wait(out, tl_report_count(entry, "ahead").text, tl_report_time(entry, "wait_ms").text,
                   differ ? tl_report_time(entry, "wait_without_complete_ms").text : NULL);
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
                   "  sources                   docs/contributors/benchmarks.md,\n"
                   "                            docs/operators/operations.md\n",
                   tl_words_number(ceil(tl_report_number(size, "joins_per_second")), 0).text,
                   tl_report_count(size, "worker_processes").text,
                   tl_words_whole(TL_PLAN_PAGES_PER_PROCESS).text,
                   tl_words_whole(TL_PLAN_JOINS_PER_PROCESS).text,
                   tl_words_number(ceil(tl_report_number(size, "redis_bytes") / 1e6), 0).text,
                   TL_PLAN_REDIS_BYTES);
}

void tl_plan_report_text(const struct tl_plan_report *report, const json_t *json,
                         struct tl_text *out)
{
    if (report->simulation != NULL)
        write_simulation(report, json_object_get(json, "simulation"), out);
    if (report->plan != NULL)
        write_plan(json_object_get(json, "plan"), out);
    if (report->warnings->n > 0)
        tl_text_append(out, "\nWarnings\n");
    for (size_t i = 0; i < report->warnings->n; i++)
        write_wrapped(report->warnings->texts[i], "  - ", "    ", out);
    if (report->plan != NULL) {
        tl_text_append(out, "\nConfiguration\n\n");
        tl_plan_report_yaml(report->input, report->plan, out);
    }
}
