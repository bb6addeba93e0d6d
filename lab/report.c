/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/base/units.h"
#include "common/config/queue_settings.h"

#include "lab/memory.h"
#include "lab/report.h"
#include "lab/words.h"

enum { COLUMNS = 80 };

static const char *const policies[] = {
    [TL_POLICY_COUNTER] = "counter", [TL_POLICY_RATE] = "rate", [TL_POLICY_BOTH] = "both"};

static const char *shape_of(const struct tl_queue_settings *settings)
{
    return settings->rate.shape == TL_RATE_BATCHES ? "batches" : "smooth";
}

/* ---- numbers into JSON ---- */

/* A member of an object, and where in a struct its number is: a 64-bit integer, -1 where it is not
 * known. */
struct member {
    const char *name;
    size_t offset;
};

/* Sets the members; null for what is not known. Times (*_ms) are multiplied with the speed. */
static void set_numbers(json_t *object, const void *from, const struct member *members, size_t n,
                        uint64_t speed)
{
    for (size_t i = 0; i < n; i++) {
        int64_t number;
        const char *last = strrchr(members[i].name, '_');
        memcpy(&number, (const char *)from + members[i].offset, sizeof(number));
        if (number > 0 && last != NULL && strcmp(last, "_ms") == 0)
            number *= (int64_t)speed;
        json_object_set_new(object, members[i].name,
                            number >= 0 ? json_integer((json_int_t)number) : json_null());
    }
}
#define SET(object, from, members, speed)                                                          \
    set_numbers(object, from, members, sizeof(members) / sizeof((members)[0]), speed)

static json_t *text_json(const char *text)
{
    json_t *value = json_string(text);
    return value != NULL ? value : json_null(); /* it is not UTF-8 */
}

static json_t *met_json(const struct tl_met *met, uint64_t speed)
{
#define MET(field)                                                                                 \
    {                                                                                              \
#field, offsetof(struct tl_met, field)                                                     \
    }
#define TIMES(field)                                                                               \
    {                                                                                              \
#field, offsetof(struct tl_times, field)                                                   \
    }
    static const struct member members[] = {MET(arrived), MET(admitted)};
    static const struct member waits[] = {TIMES(median_ms), TIMES(p90_ms), TIMES(longest_ms)};
    json_t *object = json_object();
    SET(object, met, members, speed);
    json_object_set_new(object, "waits", json_object());
    SET(json_object_get(object, "waits"), &met->waits, waits, speed);
    return object;
}

static void set_promises(json_t *object, const struct tl_met *met, uint64_t speed)
{
    static const struct member members[] = {MET(promises), MET(promises_kept), MET(told_ms),
                                            MET(true_ms)};
    SET(object, met, members, speed);
}

static json_t *lane_json(const struct tl_queue_settings *queue, unsigned lane,
                         const struct tl_met *met, uint64_t speed)
{
    static const struct member members[] = {MET(passed_by)};
    json_t *object = met_json(met, speed);
    json_object_set_new(object, "lane", json_string(queue->lanes[lane]));
    SET(object, met, members, speed);
    json_object_set_new(object, "weight",
                        queue->lane_weights.n > 0
                            ? json_integer((json_int_t)queue->lane_weights.of[lane])
                            : json_null());
    json_object_set_new(object, "starved", json_boolean(tl_lane_starved(queue, lane, met)));
    return object;
}

static json_t *settings_json(const struct tl_queue_settings *settings)
{
    json_t *capacity =
        settings->policy != TL_POLICY_RATE ? json_integer((json_int_t)settings->capacity) : NULL;
    json_t *rate =
        settings->policy == TL_POLICY_COUNTER
            ? NULL
            : json_pack("{s:I, s:I, s:s, s:I}", "admit", (json_int_t)settings->rate.admit,
                        "every_ms", (json_int_t)settings->rate.every_ms, "shape",
                        shape_of(settings), "burst", (json_int_t)settings->rate.burst);
    return json_pack("{s:s, s:o*, s:o*, s:I, s:I, s:I}", "policy", policies[settings->policy],
                     "capacity", capacity, "rate", rate, "session_ttl_ms",
                     (json_int_t)tl_queue_session_longest_ms(settings), "claim_ttl_ms",
                     (json_int_t)settings->claim_ttl_ms, "waiting_ttl_ms",
                     (json_int_t)settings->waiting_ttl_ms);
}

static json_t *simulation_json(const struct tl_queue_settings *settings,
                               const struct tl_simulation *simulation)
{
#define SIMULATION(field)                                                                          \
    {                                                                                              \
#field, offsetof(struct tl_simulation, field)                                              \
    }
    static const struct member members[] = {
        SIMULATION(served),      SIMULATION(no_shows),           SIMULATION(gave_up),
        SIMULATION(refused),     SIMULATION(still_waiting),      SIMULATION(cut_off),
        SIMULATION(most_active), SIMULATION(longest_line),       SIMULATION(longest_line_at_ms),
        SIMULATION(line_ms),     SIMULATION(line_empty_from_ms), SIMULATION(most_on_the_site),
        SIMULATION(end_ms)};
    json_t *object = met_json(&simulation->all, 1), *lanes = json_array();
    SET(object, simulation, members, 1);
    if (settings->policy != TL_POLICY_RATE)
        json_object_set_new(object, "slots",
                            json_pack("{s:f, s:f, s:f}", "empty", simulation->slots_empty,
                                      "empty_in_line", simulation->slots_empty_in_line, "no_shows",
                                      simulation->slots_no_shows));
    for (unsigned lane = 0; lane < settings->n_lanes; lane++)
        json_array_append_new(lanes, lane_json(settings, lane, &simulation->lanes[lane], 1));
    json_object_set_new(object, "lanes", lanes);
    return object;
}

/* ---- and into words ---- */

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

/* ---- plan: JSON ---- */

static struct tl_words setting(int64_t ms)
{
    struct tl_words words = {""};
    tl_duration_format(ms, words.text, sizeof(words.text));
    return words;
}

void tl_plan_report_yaml(const struct tl_queue_settings *settings, struct tl_text *out)
{
    tl_text_append(out, "queues:\n  sale:\n    policy: %s\n", policies[settings->policy]);
    if (settings->policy != TL_POLICY_RATE)
        tl_text_append(out, "    capacity: %" PRIu64 "\n", settings->capacity);
    if (settings->policy != TL_POLICY_COUNTER) {
        tl_text_append(out, "    rate: { admit: %" PRIu64 ", every: %s, shape: %s",
                       settings->rate.admit, setting(settings->rate.every_ms).text,
                       shape_of(settings));
        if (settings->rate.shape != TL_RATE_BATCHES)
            tl_text_append(out, ", burst: %" PRIu64, settings->rate.burst);
        tl_text_append(out, " }\n");
    }
    tl_text_append(out, "    session_ttl: %s\n    claim_ttl: %s\n    waiting_ttl: %s\n",
                   setting(tl_queue_session_longest_ms(settings)).text,
                   setting(settings->claim_ttl_ms).text, setting(settings->waiting_ttl_ms).text);
}

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

/* What fits, with --safety, as a limit. */
static void add_limit(json_t *steps, const struct tl_plan_report *report, const char *name,
                      double fits, uint64_t safe)
{
    const double safety = report->input->safety, forgiving = 1 + 1e-12;
    add(steps, name, (double)safe, "%s x (1 - %s) = %s, rounded down: %s",
        tl_words_number(floor(fits * forgiving), 0).text, tl_words_number(safety, 4).text,
        tl_words_number(floor(fits * (1 - safety) * forgiving), 0).text, tl_words_whole(safe).text);
}

/* So that a rate below one per second is seen, too. */
static struct tl_words per_second(double value)
{
    return tl_words_number(value, value < 1 ? 6 : 2);
}

static json_t *formulas_json(const struct tl_plan_report *report)
{
    const struct tl_plan_input *input = report->input;
    const struct tl_plan *plan = report->plan;
    const double session_s = (double)input->session_ms / 1000;
    const double ttl_s = (double)plan->settings.session_ttl_ms / 1000;
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
    add(steps, "session_ttl", ttl_s * 1000, "%s s x (1 + %s) = %s s",
        tl_words_number(session_s, 3).text, tl_words_number(input->margin, 4).text,
        tl_words_number(ttl_s, 3).text);
    /* What becomes a limit is rounded down, what only describes to the nearest. */
    add_share_of_time(steps, report, "on the site at once", session_s,
                      floor(plan->at_once * (1 + 1e-12)));
    add_share_of_time(steps, report, "...all until session_ttl", ttl_s, round(plan->at_once_most));
    if (input->policy != TL_POLICY_RATE)
        add_limit(steps, report, "capacity", plan->at_once, plan->safe_capacity);
    if (input->policy == TL_POLICY_COUNTER)
        return steps;
    add_share_of_time(steps, report, "visitors per period", (double)input->period_ms / 1000,
                      floor(plan->per_period * (1 + 1e-12)));
    add_limit(steps, report, "rate.admit", plan->per_period, plan->safe_admit);
    return steps;
}

/* For some lengths of the line, and that of the whole crowd. */
static json_t *waits_json(const struct tl_plan_report *report)
{
    const uint64_t lines[] = {1000, 10000, 100000, 1000000, report->input->crowd.visitors};
    enum { LAST = sizeof(lines) / sizeof(lines[0]) - 1 };
    json_t *list = json_array();
    for (size_t i = 0; i <= LAST; i++) {
        bool said = lines[i] == 0;
        for (size_t k = 0; k < i; k++)
            said = said || lines[k] == lines[i];
        if (!said)
            json_array_append_new(
                list,
                json_pack("{s:I, s:I, s:I}", "ahead", (json_int_t)lines[i], "wait_ms",
                          (json_int_t)tl_plan_wait_ms(lines[i], report->plan->admitted),
                          "wait_without_complete_ms",
                          (json_int_t)tl_plan_wait_ms(lines[i], report->plan->admitted_least)));
    }
    return list;
}

static json_t *plan_json(const struct tl_plan_report *report)
{
    const struct tl_plan *plan = report->plan;
    struct tl_text yaml = {0};
    tl_plan_report_yaml(&plan->settings, &yaml);
    if (yaml.failed)
        tl_no_memory();
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
        report->input->safety, "settings", settings_json(&plan->settings), "formulas",
        formulas_json(report), "waits", waits_json(report), "size", size, "yaml", yaml.data);
    tl_text_free(&yaml);
    return json;
}

static json_t *series_json(const struct tl_series *series)
{
#define POINT(field)                                                                               \
    {                                                                                              \
#field, offsetof(struct tl_series_point, field)                                            \
    }
    static const struct member members[] = {POINT(waiting), POINT(active), POINT(arrived),
                                            POINT(admitted)};
    json_t *list = json_array();
    for (size_t i = 0; i < series->n; i++) {
        json_t *point = json_pack("{s:I}", "at_ms", (json_int_t)i * series->width_ms);
        SET(point, &series->points[i], members, 1);
        json_array_append_new(list, point);
    }
    return list;
}

/* The simulation, who came, and how it went on. */
static json_t *replay_json(const struct tl_plan_report *report)
{
    const struct tl_simulation *simulation = report->simulation;
    const struct tl_plan_input *input = report->input;
    json_t *json = simulation_json(report->settings, simulation);
    json_object_set_new(json, "visitors", text_json(report->visitors));
    json_object_set_new(json, "settings", settings_json(report->settings));
    json_object_set_new(json, "opens_after_ms",
                        json_integer((json_int_t)report->settings->opens_at_ms));
    /* The share of the site's throughput that the busiest moment took. */
    if (report->plan != NULL)
        json_object_set_new(
            json, "busiest_share_of_tps",
            json_real((double)simulation->most_on_the_site * report->plan->calls_used /
                      ((double)input->session_ms / 1000) / input->tps));
    json_object_set_new(json, "series", series_json(&simulation->series));
    return json;
}

json_t *tl_plan_report_json(const struct tl_plan_report *report)
{
    json_t *warnings = json_array();
    for (size_t i = 0; i < report->warnings->n; i++)
        json_array_append_new(warnings, json_string(report->warnings->texts[i]));
    return json_pack("{s:o, s:o, s:o}", "plan",
                     report->plan != NULL ? plan_json(report) : json_null(), "simulation",
                     report->simulation != NULL ? replay_json(report) : json_null(), "warnings",
                     warnings);
}

/* ---- plan: text ---- */

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
    write_wait(out, "per second", per_second(admitted).text,
               differ ? per_second(least).text : NULL);
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
    tl_text_append(
        out,
        "  joins                     %s per second when most come\n"
        "  worker processes          %s on all machines: %s pages each\n"
        "                            (http.max_connections), or half of %s joins\n"
        "                            per second, measured on one core\n"
        "  memory of Redis           %s MB: twice %d bytes per visitor\n"
        "  sources                   docs/contributors/benchmarks.md,\n"
        "                            docs/operators/operations.md\n",
        tl_words_number(ceil(number_of(size, "joins_per_second")), 0).text,
        count_of(size, "worker_processes").text, tl_words_whole(TL_PLAN_PAGES_PER_PROCESS).text,
        tl_words_whole(TL_PLAN_JOINS_PER_PROCESS).text,
        tl_words_number(ceil(number_of(size, "redis_bytes") / 1e6), 0).text, TL_PLAN_REDIS_BYTES);
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

/* ---- rehearse: JSON ---- */

const char *tl_rehearse_advice(const char *reason)
{
    static const struct {
        const char *part, *advice;
    } rows[] = {
        {"too-many-joins",
         "all joins come from this machine, and http.joins_per_minute limits one address: give "
         "the rehearsal an API key (a line \"rehearsal KEY\" in the file of secrets.api_keys, on "
         "this machine and the workers'), or raise the limit while you rehearse"},
        {"challenge-required",
         "the queue asks newcomers for a challenge, which the rehearsal does not solve: give it an "
         "API key (a line \"rehearsal KEY\" in the file of secrets.api_keys)"},
        {"by-invitation",
         "the queue takes only the invited: give the rehearsal an API key (a line \"rehearsal "
         "KEY\" in the file of secrets.api_keys), or a key HS256 in that of secrets.invite_keys"},
        {"lane", "only trusted visitors may choose a lane: give the rehearsal an API key (a line "
                 "\"rehearsal KEY\" in the file of secrets.api_keys), or a key HS256 in that of "
                 "secrets.invite_keys"},
        {"blocked", "this machine's address is blocked: `tellerline block list`"},
        {"not-trusted", "the workers do not know the API key of this machine's secrets.api_keys"},
        {" full", "max_waiting was reached, as the settings want it"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (strstr(reason, rows[i].part) != NULL)
            return rows[i].advice;
    }
    return NULL;
}

static json_t *reasons_json(const struct tl_reasons *reasons)
{
    json_t *list = json_array();
    for (size_t i = 0; i < reasons->n; i++)
        json_array_append_new(list, json_pack("{s:o, s:I, s:s*}", "reason",
                                              text_json(reasons->list[i].name), "count",
                                              (json_int_t)reasons->list[i].count, "advice",
                                              tl_rehearse_advice(reasons->list[i].name)));
    return list;
}

static json_t *fates_json(const struct tl_figures *figures)
{
    static const char *const names[TL_FATES_N] = {
        [TL_FATE_OPEN] = "not_done",   [TL_FATE_SERVED] = "served",
        [TL_FATE_CUT_OFF] = "cut_off", [TL_FATE_NO_SHOW] = "no_shows",
        [TL_FATE_GAVE_UP] = "gave_up", [TL_FATE_LEFT] = "left",
        [TL_FATE_REFUSED] = "refused", [TL_FATE_DROPPED] = "dropped",
        [TL_FATE_FAILED] = "failed"};
    json_t *fates = json_object();
    for (int i = 0; i < TL_FATES_N; i++)
        json_object_set_new(fates, names[i], json_integer((json_int_t)figures->fates[i]));
    return fates;
}

static json_t *rehearsed_json(const struct tl_rehearse_report *report)
{
#define REHEARSAL(field)                                                                           \
    {                                                                                              \
#field, offsetof(struct tl_rehearsal, field)                                               \
    }
#define FIGURES(field)                                                                             \
    {                                                                                              \
#field, offsetof(struct tl_figures, field)                                                 \
    }
    static const struct member seen[] = {
        REHEARSAL(longest_line),       REHEARSAL(longest_line_at_ms),
        REHEARSAL(most_active),        REHEARSAL(most_on_the_site),
        REHEARSAL(line_empty_from_ms), REHEARSAL(end_ms),
        REHEARSAL(set_back),           REHEARSAL(requests)};
    static const struct member summed[] = {FIGURES(joined), FIGURES(overtaken)};
    const struct tl_rehearsal *rehearsal = report->rehearsal;
    const struct tl_figures *figures = report->figures;
    json_t *json = met_json(&figures->all, report->speed), *lanes = json_array();
    set_promises(json, &figures->all, report->speed);
    SET(json, rehearsal, seen, report->speed);
    SET(json, figures, summed, report->speed);
    json_object_set_new(json, "fates", fates_json(figures));
    if (report->settings->policy != TL_POLICY_COUNTER)
        json_object_set_new(json, "admissions_per_period",
                            json_pack("{s:I, s:I, s:f}", "every_ms",
                                      (json_int_t)report->settings->rate.every_ms, "most",
                                      (json_int_t)figures->per_period, "average",
                                      figures->per_period_average));
    json_object_set_new(json, "refused", reasons_json(&rehearsal->refused));
    json_object_set_new(json, "errors", reasons_json(&rehearsal->errors));
    json_object_set_new(json, "stopped", json_boolean(rehearsal->stopped));
    json_object_set_new(json, "overtime", json_boolean(rehearsal->overtime));
    for (unsigned lane = 0; lane < report->settings->n_lanes; lane++) {
        json_t *entry = lane_json(report->settings, lane, &figures->lanes[lane], report->speed);
        set_promises(entry, &figures->lanes[lane], report->speed);
        json_array_append_new(lanes, entry);
    }
    json_object_set_new(json, "lanes", lanes);
    return json;
}

json_t *tl_rehearse_report_json(const struct tl_rehearse_report *report)
{
    json_t *broken = json_array();
    for (size_t i = 0; i < report->broken->n; i++)
        json_array_append_new(broken, json_string(report->broken->texts[i]));
    return json_pack("{s:s, s:s, s:o, s:s, s:o, s:I, s:b, s:o, s:o, s:o}", "queue", report->queue,
                     "scratch_queue", report->scratch, "server", text_json(report->server),
                     "settings_from", report->source, "visitors", text_json(report->visitors),
                     "speed", (json_int_t)report->speed, "kept", (int)(report->broken->n == 0),
                     "not_kept", broken, "rehearsed", rehearsed_json(report), "simulated",
                     simulation_json(report->settings, report->simulation));
}

/* ---- rehearse: text ---- */

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
                   report->source, report->server, report->visitors);
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
