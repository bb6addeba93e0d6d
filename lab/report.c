/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/base/units.h"
#include "common/config/queue_settings.h"
#include "common/config/queue_table.h"
#include "common/words/words.h"

#include "lab/memory.h"
#include "lab/report.h"

static const char *shape_of(const struct tl_queue_settings *settings)
{
    return settings->rate.shape == TL_RATE_BATCHES ? "batches" : "smooth";
}

/* ---- numbers ---- */

/* A member of an object, and where in a struct its number is: a 64-bit integer, -1 where it is not
 * known. */
struct member {
    const char *name;
    size_t offset;
};

#define OF(type, field) #field, offsetof(struct type, field)

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

static json_t *sentences_json(const struct tl_sentences *sentences)
{
    json_t *list = json_array();
    for (size_t i = 0; i < sentences->n; i++)
        json_array_append_new(list, text_json(sentences->texts[i]));
    return list;
}

static json_t *met_json(const struct tl_met *met, uint64_t speed)
{
    static const struct member members[] = {{OF(tl_met, arrived)}, {OF(tl_met, admitted)}};
    static const struct member waits[] = {
        {OF(tl_times, median_ms)}, {OF(tl_times, p90_ms)}, {OF(tl_times, longest_ms)}};
    json_t *object = json_object();
    SET(object, met, members, speed);
    json_object_set_new(object, "waits", json_object());
    SET(json_object_get(object, "waits"), &met->waits, waits, speed);
    return object;
}

static void set_promises(json_t *object, const struct tl_met *met, uint64_t speed)
{
    static const struct member members[] = {{OF(tl_met, promises)},
                                            {OF(tl_met, promises_kept)},
                                            {OF(tl_met, told_ms)},
                                            {OF(tl_met, true_ms)}};
    SET(object, met, members, speed);
}

static json_t *lane_json(const struct tl_queue_settings *queue, unsigned lane,
                         const struct tl_met *met, uint64_t speed)
{
    static const struct member members[] = {{OF(tl_met, passed_by)}};
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
    return json_pack("{s:s, s:o*, s:o*, s:I, s:I, s:I}", "policy",
                     tl_policy_names[settings->policy], "capacity", capacity, "rate", rate,
                     "session_ttl_ms", (json_int_t)tl_queue_session_longest_ms(settings),
                     "claim_ttl_ms", (json_int_t)settings->claim_ttl_ms, "waiting_ttl_ms",
                     (json_int_t)settings->waiting_ttl_ms);
}

static json_t *simulation_json(const struct tl_queue_settings *settings,
                               const struct tl_simulation *simulation)
{
    static const struct member members[] = {{OF(tl_simulation, served)},
                                            {OF(tl_simulation, no_shows)},
                                            {OF(tl_simulation, gave_up)},
                                            {OF(tl_simulation, refused)},
                                            {OF(tl_simulation, still_waiting)},
                                            {OF(tl_simulation, cut_off)},
                                            {OF(tl_simulation, most_active)},
                                            {OF(tl_simulation, longest_line)},
                                            {OF(tl_simulation, longest_line_at_ms)},
                                            {OF(tl_simulation, line_ms)},
                                            {OF(tl_simulation, line_empty_from_ms)},
                                            {OF(tl_simulation, most_on_the_site)},
                                            {OF(tl_simulation, end_ms)}};
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

/* ---- plan ---- */

static struct tl_words setting(int64_t ms)
{
    struct tl_words words = {""};
    tl_duration_format(ms, words.text, sizeof(words.text));
    return words;
}

void tl_plan_report_yaml(const struct tl_queue_settings *settings, struct tl_text *out)
{
    tl_text_append(out, "queues:\n  sale:\n    policy: %s\n", tl_policy_names[settings->policy]);
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
    va_list args;
    va_start(args, format);
    json_t *formula = json_vsprintf(format, args);
    va_end(args);
    json_array_append_new(
        steps, json_pack("{s:s, s:o, s:f}", "name", name, "formula", formula, "value", value));
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
        tl_words_rate(plan->per_second).text);
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
    json_t *size = plan->processes == 0
                       ? NULL
                       : json_pack("{s:f, s:I, s:I, s:I}", "joins_per_second", plan->peak_joins,
                                   "worker_processes", (json_int_t)plan->processes, "redis_bytes",
                                   (json_int_t)plan->redis_bytes, "redis_masters",
                                   (json_int_t)plan->redis_masters);
    json_t *json = json_pack(
        "{s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:o, s:o, s:o, s:o*, s:s}",
        "requests_per_session", plan->calls_used, "visitors_per_second", plan->per_second,
        "visitors_per_period", plan->per_period, "visitors_at_once", plan->at_once,
        "visitors_at_once_until_session_ttl", plan->at_once_most, "admitted_per_second",
        plan->admitted, "admitted_per_second_without_complete", plan->admitted_least, "safety",
        report->input->safety, "settings", settings_json(&plan->settings), "formulas",
        formulas_json(report), "waits", waits_json(report), "size", size, "yaml", tl_xtext(&yaml));
    tl_text_free(&yaml);
    return json;
}

static json_t *series_json(const struct tl_series *series)
{
    static const struct member members[] = {{OF(tl_series_point, waiting)},
                                            {OF(tl_series_point, active)},
                                            {OF(tl_series_point, arrived)},
                                            {OF(tl_series_point, admitted)}};
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
    return json_pack("{s:o, s:o, s:o}", "plan",
                     report->plan != NULL ? plan_json(report) : json_null(), "simulation",
                     report->simulation != NULL ? replay_json(report) : json_null(), "warnings",
                     sentences_json(report->warnings));
}

/* ---- rehearse ---- */

const char *tl_rehearse_advice(const char *reason)
{
#define API_KEY                                                                                    \
    "an API key (a line \"rehearsal KEY\" in the file of secrets.api_keys, on this machine and "   \
    "the "                                                                                         \
    "workers')"
#define ANY_KEY API_KEY ", or a key HS256 in that of secrets.invite_keys"
    static const struct {
        const char *part, *advice;
    } rows[] = {
        {"too-many-joins",
         "all joins come from this machine, and http.joins_per_minute limits one address, a third "
         "of it at once: give the rehearsal " ANY_KEY ", raise the limit while you rehearse, or "
         "choose fewer --visitors or a lower --speed"},
        {"challenge-required", "the queue asks newcomers for a challenge, which the rehearsal does "
                               "not solve: give it " ANY_KEY},
        {"by-invitation", "the queue takes only the invited: give the rehearsal " ANY_KEY},
        {"lane", "only trusted visitors may choose a lane: give the rehearsal " ANY_KEY},
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
    static const struct member seen[] = {
        {OF(tl_rehearsal, longest_line)},       {OF(tl_rehearsal, longest_line_at_ms)},
        {OF(tl_rehearsal, most_active)},        {OF(tl_rehearsal, most_on_the_site)},
        {OF(tl_rehearsal, line_empty_from_ms)}, {OF(tl_rehearsal, end_ms)},
        {OF(tl_rehearsal, set_back)},           {OF(tl_rehearsal, requests)}};
    static const struct member summed[] = {{OF(tl_figures, joined)}, {OF(tl_figures, overtaken)}};
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
    return json_pack("{s:s, s:s, s:o, s:s, s:o, s:I, s:b, s:o, s:o, s:o}", "queue", report->queue,
                     "scratch_queue", report->scratch, "target", text_json(report->target),
                     "settings_from", report->source, "visitors", text_json(report->visitors),
                     "speed", (json_int_t)report->speed, "kept", (int)(report->broken->n == 0),
                     "not_kept", sentences_json(report->broken), "rehearsed",
                     rehearsed_json(report), "simulated",
                     simulation_json(report->settings, report->simulation));
}
