/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/base/units.h"

#include "lab/chart.h"
#include "lab/lanes_report.h"
#include "lab/plan_report.h"
#include "lab/words.h"

enum { COLUMNS = 80, STEPS_MOST = 12 };

static const char *const policies[] = {
    [TL_POLICY_COUNTER] = "counter", [TL_POLICY_RATE] = "rate", [TL_POLICY_BOTH] = "both"};

/* A number or a time as text that lives as long as the expression it is used in. */
struct words {
    char text[TL_WORDS_MAX];
};

static struct words number(double value, int decimals)
{
    struct words words = {""};
    tl_words_number(value, decimals, words.text, sizeof(words.text));
    return words;
}

static struct words whole(uint64_t value)
{
    return number((double)value, 0);
}

/* So that a rate below one per second is seen, too. */
static struct words per_second(double value)
{
    return number(value, value < 1 ? 6 : 2);
}

static struct words setting(int64_t ms)
{
    struct words words = {""};
    tl_duration_format(ms, words.text, sizeof(words.text));
    return words;
}

static struct words span(int64_t ms)
{
    struct words words = {""};
    tl_words_time(ms, words.text, sizeof(words.text));
    return words;
}

static struct words share(double value)
{
    struct words words = {""};
    tl_words_share(value, words.text, sizeof(words.text));
    return words;
}

/* ---- formulas ---- */

struct step {
    const char *name;
    char formula[120];
    double value;
};

struct steps {
    size_t n;
    struct step list[STEPS_MOST];
};

static void add(struct steps *steps, const char *name, double value, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static void add(struct steps *steps, const char *name, double value, const char *format, ...)
{
    struct step *step = &steps->list[steps->n++];
    va_list args;
    va_start(args, format);
    vsnprintf(step->formula, sizeof(step->formula), format, args);
    va_end(args);
    step->name = name;
    step->value = value;
}

/* tps x SECONDS / calls. */
static void add_share_of_time(struct steps *steps, const struct tl_plan_report *report,
                              const char *name, double seconds, double value)
{
    add(steps, name, value, "%s x %s s / %s = %s", number(report->input->tps, 2).text,
        number(seconds, 3).text, number(report->plan->calls_used, 4).text, number(value, 0).text);
}

static void collect_steps(const struct tl_plan_report *report, struct steps *steps)
{
    const struct tl_plan_input *input = report->input;
    const struct tl_plan *plan = report->plan;
    double session_s = (double)input->session_ms / 1000;
    double reserve = 1 - input->safety;
    steps->n = 0;
    if (input->calls_per_ms > 0)
        add(steps, "requests of a session", plan->calls, "%s x %s s / %s s = %s",
            number(input->calls, 4).text, number(session_s, 3).text,
            number((double)input->calls_per_ms / 1000, 0).text, number(plan->calls, 4).text);
    add(steps, "with repeats", plan->calls_used, "%s x (1 + %s) = %s", number(plan->calls, 4).text,
        number(input->failure_rate, 4).text, number(plan->calls_used, 4).text);
    add(steps, "visitors per second", plan->per_second, "%s / %s = %s", number(input->tps, 2).text,
        number(plan->calls_used, 4).text, per_second(plan->per_second).text);
    add_share_of_time(steps, report, "visitors per minute", 60, round(plan->per_second * 60));
    add(steps, "session_ttl", (double)plan->session_ttl_ms, "%s s x (1 + %s) = %s s",
        number(session_s, 3).text, number(input->margin, 4).text,
        number((double)plan->session_ttl_ms / 1000, 3).text);
    /* What becomes a limit is rounded down, what only describes to the nearest. */
    add_share_of_time(steps, report, "on the site at once", session_s,
                      floor(plan->at_once * (1 + 1e-12)));
    add_share_of_time(steps, report, "...all until session_ttl",
                      (double)plan->session_ttl_ms / 1000, round(plan->at_once_most));
    if (input->policy != TL_POLICY_RATE)
        add(steps, "capacity", (double)plan->safe_capacity, "%s x (1 - %s) = %s, rounded down: %s",
            number(floor(plan->at_once * (1 + 1e-12)), 0).text, number(input->safety, 4).text,
            number(floor(plan->at_once * reserve * (1 + 1e-12)), 0).text,
            whole(plan->safe_capacity).text);
    if (input->policy == TL_POLICY_COUNTER)
        return;
    add_share_of_time(steps, report, "visitors per period", (double)input->period_ms / 1000,
                      floor(plan->per_period * (1 + 1e-12)));
    add(steps, "rate.admit", (double)plan->safe_admit, "%s x (1 - %s) = %s, rounded down: %s",
        number(floor(plan->per_period * (1 + 1e-12)), 0).text, number(input->safety, 4).text,
        number(floor(plan->per_period * reserve * (1 + 1e-12)), 0).text,
        whole(plan->safe_admit).text);
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

static void write_formulas(const struct tl_plan_report *report, struct tl_text *out)
{
    struct steps steps;
    collect_steps(report, &steps);
    tl_text_append(out, "Formulas\n");
    for (size_t i = 0; i < steps.n; i++)
        tl_text_append(out, "  %-25s %s\n", steps.list[i].name, steps.list[i].formula);
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

/* A row of the table; `more` may be NULL. */
static void write_wait(struct tl_text *out, const char *ahead, const char *wait, const char *more)
{
    if (more != NULL)
        tl_text_append(out, "  %13s  %-14s  %s\n", ahead, wait, more);
    else
        tl_text_append(out, "  %13s  %s\n", ahead, wait);
}

static void write_waits(const struct tl_plan_report *report, struct tl_text *out)
{
    const struct tl_plan *plan = report->plan;
    /* A rate alone does not depend on how sessions end. */
    bool differ = plan->admitted_least < plan->admitted;
    tl_text_append(out, "\nWaits, while the site is full and nobody gives up\n");
    write_wait(out, "IN FRONT", "WAIT",
               differ ? "WITHOUT `complete`, ALL UNTIL session_ttl" : NULL);
    write_wait(out, "per second", per_second(plan->admitted).text,
               differ ? per_second(plan->admitted_least).text : NULL);
    for (size_t i = 0; line_of(report, i) > 0; i++) {
        uint64_t ahead = line_of(report, i);
        write_wait(out, whole(ahead).text, span(tl_plan_wait_ms(ahead, plan->admitted)).text,
                   differ ? span(tl_plan_wait_ms(ahead, plan->admitted_least)).text : NULL);
    }
}

static void write_size(const struct tl_plan_report *report, struct tl_text *out)
{
    const struct tl_plan *plan = report->plan;
    tl_text_append(out, "\nSize\n");
    if (plan->processes == 0) {
        tl_text_append(out, "  workers and memory: add --visitors N\n");
        return;
    }
    tl_text_append(out, "  joins                     %s per second when most come\n",
                   number(ceil(plan->peak_joins), 0).text);
    tl_text_append(out,
                   "  worker processes          %s on all machines: %s pages each\n"
                   "                            (http.max_connections), or half of %s joins\n"
                   "                            per second, measured on one core\n",
                   whole(plan->processes).text, whole(TL_PLAN_PAGES_PER_PROCESS).text,
                   whole(TL_PLAN_JOINS_PER_PROCESS).text);
    tl_text_append(out,
                   "  memory of Redis           %s MB: twice %d bytes per visitor\n"
                   "  sources                   docs/contributors/benchmarks.md,\n"
                   "                            docs/operators/operations.md\n",
                   number(ceil((double)plan->redis_bytes / 1e6), 0).text, TL_PLAN_REDIS_BYTES);
}

/* The share of the site's throughput that the busiest moment took; 0 when it is not known. */
static double busiest(const struct tl_plan_report *report)
{
    if (report->plan == NULL)
        return 0;
    return (double)report->simulation->most_present * report->plan->calls_used /
           ((double)report->input->session_ms / 1000) / report->input->tps;
}

static void write_settings(const struct tl_simulation_settings *settings, struct tl_text *out)
{
    struct tl_text sentence = {0};
    tl_text_append(&sentence, "policy %s; ", policies[settings->policy]);
    if (settings->policy != TL_POLICY_RATE)
        tl_text_append(&sentence, "capacity %s; ", whole(settings->capacity).text);
    if (settings->policy != TL_POLICY_COUNTER)
        tl_text_append(&sentence, "%s admitted every %s, %s, burst %s; ",
                       whole(settings->admit).text, setting(settings->every_ms).text,
                       settings->lumps ? "in lumps" : "smooth",
                       whole(settings->lumps ? 0 : settings->burst).text);
    tl_text_append(&sentence, "sessions up to %s, claim_ttl %s, waiting_ttl %s",
                   setting(settings->session_limit_ms).text, setting(settings->claim_ttl_ms).text,
                   setting(settings->waiting_ttl_ms).text);
    if (settings->opens_ms > 0)
        tl_text_append(&sentence, "; opens after %s", setting(settings->opens_ms).text);
    if (sentence.failed)
        out->failed = true;
    else
        write_wrapped(sentence.data, "  settings        ", "                  ", out);
    tl_text_free(&sentence);
}

static void write_count(const char *name, uint64_t count, uint64_t all, const char *more,
                        struct tl_text *out)
{
    tl_text_append(out, "  %-15s %11s  %5s%s%s\n", name, whole(count).text,
                   share(all > 0 ? (double)count / (double)all : 0).text,
                   more[0] != '\0' ? "  " : "", more);
}

static void write_lanes(const struct tl_plan_report *report, struct tl_text *out)
{
    const struct tl_plan_lanes *lanes = &report->settings.lanes;
    if (lanes->n < 2)
        return;
    tl_text_append(out, "\n");
    tl_lanes_report_head(out);
    for (unsigned lane = 0; lane < lanes->n; lane++)
        tl_lanes_report_row(lanes, lane, "simulated", &report->simulation->lanes[lane], out);
    tl_text_append(out, "\n");
    for (unsigned lane = 0; lane < lanes->n; lane++)
        tl_lanes_report_starved(lanes, lane, &report->simulation->lanes[lane], out);
}

static void write_simulation(const struct tl_plan_report *report, struct tl_text *out)
{
    const struct tl_simulation *sim = report->simulation;
    tl_text_append(out, "Simulation\n");
    write_wrapped(report->visitors, "  visitors        ", "                  ", out);
    write_settings(&report->settings, out);
    tl_text_append(out, "\n");
    tl_chart_text(&sim->series, report->colour, out);
    tl_text_append(out, "\n");
    tl_text_append(out, "  %-15s %11s\n", "arrived", whole(sim->arrived).text);
    write_count("served", sim->served, sim->arrived, "", out);
    write_count("no-shows", sim->no_shows, sim->arrived, "called, and did not come", out);
    write_count("gave up", sim->gave_up, sim->arrived, "dropped from the line", out);
    if (report->settings.max_waiting > 0)
        write_count("refused", sim->refused, sim->arrived, "by max_waiting", out);
    write_count("still waiting", sim->waiting, sim->arrived, "", out);
    write_count("cut off", sim->cut_off, sim->served, "of the sessions, at session_ttl", out);
    tl_text_append(out, "  longest line    %11s  after %s\n", whole(sim->longest_line).text,
                   span(sim->longest_line_ms).text);
    tl_text_append(out,
                   "  waits           median %s, longest %s;\n"
                   "                  19 of 20 up to %s\n",
                   span(sim->wait_median_ms).text, span(sim->wait_longest_ms).text,
                   span(sim->wait_most_ms).text);
    write_lanes(report, out);
    if (sim->last_empty_ms >= 0)
        tl_text_append(out, "  line empty      for good after %s; there was a line for %s\n",
                       span(sim->last_empty_ms).text, span(sim->line_ms).text);
    else
        tl_text_append(out, "  line empty      never for good; there was a line for %s\n",
                       span(sim->line_ms).text);
    tl_text_append(out, "  most at once    slots taken: %s, visitors on the site: %s\n",
                   whole(sim->most_active).text, whole(sim->most_present).text);
    if (report->settings.policy != TL_POLICY_RATE)
        tl_text_append(out,
                       "  slots empty     %s of the time, %s while visitors waited;\n"
                       "                  held for no-shows: %s (opening to last admission)\n",
                       share(sim->slots_empty).text, share(sim->slots_empty_in_line).text,
                       share(sim->slots_no_shows).text);
    if (report->plan != NULL)
        tl_text_append(out, "  requests        at most %s of what the site serves\n",
                       share(busiest(report)).text);
    tl_text_append(out, "\n");
}

void tl_plan_report_text(const struct tl_plan_report *report, struct tl_text *out)
{
    if (report->simulation != NULL)
        write_simulation(report, out);
    if (report->plan != NULL) {
        write_formulas(report, out);
        write_waits(report, out);
        write_size(report, out);
    }
    if (report->warnings->n > 0)
        tl_text_append(out, "\nWarnings\n");
    for (size_t i = 0; i < report->warnings->n; i++)
        write_wrapped(report->warnings->texts[i], "  - ", "    ", out);
    if (report->plan != NULL) {
        tl_text_append(out, "\nConfiguration\n\n");
        tl_plan_report_yaml(report->input, report->plan, out);
    }
}

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

/* Appends the value; without memory the list becomes NULL. */
static void append(json_t **list, json_t *value)
{
    if (json_array_append_new(*list, value) == 0)
        return;
    json_decref(*list);
    *list = NULL;
}

static json_t *formulas_json(const struct tl_plan_report *report)
{
    struct steps steps;
    json_t *list = json_array();
    collect_steps(report, &steps);
    for (size_t i = 0; i < steps.n; i++)
        append(&list, json_pack("{s:s, s:s, s:f}", "name", steps.list[i].name, "formula",
                                steps.list[i].formula, "value", steps.list[i].value));
    return list;
}

static json_t *waits_json(const struct tl_plan_report *report)
{
    const struct tl_plan *plan = report->plan;
    json_t *list = json_array();
    for (size_t i = 0; line_of(report, i) > 0; i++) {
        uint64_t ahead = line_of(report, i);
        append(&list, json_pack("{s:I, s:I, s:I}", "ahead", (json_int_t)ahead, "wait_ms",
                                (json_int_t)tl_plan_wait_ms(ahead, plan->admitted),
                                "wait_without_complete_ms",
                                (json_int_t)tl_plan_wait_ms(ahead, plan->admitted_least)));
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
    tl_simulation_settings_planned(report->input, plan, &settings);
    json_t *size =
        plan->processes == 0
            ? NULL
            : json_pack("{s:f, s:I, s:I}", "joins_per_second", plan->peak_joins, "worker_processes",
                        (json_int_t)plan->processes, "redis_bytes", (json_int_t)plan->redis_bytes);
    json_t *json =
        json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:o, s:o, s:o, s:o*, s:s}",
                  "requests_per_session", plan->calls_used, "visitors_per_second", plan->per_second,
                  "visitors_per_period", plan->per_period, "visitors_at_once", plan->at_once,
                  "visitors_at_once_until_session_ttl", plan->at_once_most, "admitted_per_second",
                  plan->admitted, "admitted_per_second_without_complete", plan->admitted_least,
                  "safety", report->input->safety, "settings", settings_json(&settings), "formulas",
                  formulas_json(report), "waits", waits_json(report), "size", size, "yaml",
                  yaml.failed ? NULL : yaml.data); /* NULL fails the whole */
    tl_text_free(&yaml);
    return json;
}

static json_t *series_json(const struct tl_series *series)
{
    json_t *list = json_array();
    for (size_t i = 0; i < series->n; i++) {
        const struct tl_series_point *point = &series->points[i];
        append(&list,
               json_pack("{s:I, s:I, s:I, s:I, s:I}", "at_ms", (json_int_t)i * series->width_ms,
                         "waiting", (json_int_t)point->waiting, "active", (json_int_t)point->active,
                         "arrived", (json_int_t)point->arrived, "admitted",
                         (json_int_t)point->admitted));
    }
    return list;
}

static json_t *lanes_json(const struct tl_plan_report *report)
{
    json_t *list = json_array();
    for (unsigned lane = 0; lane < report->settings.lanes.n; lane++)
        append(&list, tl_lanes_report_json(&report->settings.lanes, lane,
                                           &report->simulation->lanes[lane]));
    return list;
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
    json_t *empty_from =
        sim->last_empty_ms >= 0 ? json_integer((json_int_t)sim->last_empty_ms) : NULL;
    return json_pack(
        "{s:s, s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o*, s:o*, s:I, "
        "s:I, s:o*, s:o, s:o}",
        "visitors", report->visitors, "settings", settings_json(&report->settings), "arrived",
        (json_int_t)sim->arrived, "served", (json_int_t)sim->served, "no_shows",
        (json_int_t)sim->no_shows, "gave_up", (json_int_t)sim->gave_up, "refused",
        (json_int_t)sim->refused, "still_waiting", (json_int_t)sim->waiting, "cut_off",
        (json_int_t)sim->cut_off, "longest_line", (json_int_t)sim->longest_line,
        "longest_line_at_ms", (json_int_t)sim->longest_line_ms, "most_active",
        (json_int_t)sim->most_active, "most_on_the_site", (json_int_t)sim->most_present, "waits",
        waits, "slots", slots, "line_empty_from_ms", empty_from, "line_ms",
        (json_int_t)sim->line_ms, "end_ms", (json_int_t)sim->end_ms, "busiest_share_of_tps",
        report->plan != NULL ? json_real(busiest(report)) : NULL, "series",
        series_json(&sim->series), "lanes", lanes_json(report));
}

json_t *tl_plan_report_json(const struct tl_plan_report *report)
{
    json_t *warnings = json_array();
    for (size_t i = 0; i < report->warnings->n; i++)
        append(&warnings, json_string(report->warnings->texts[i]));
    json_t *plan = report->plan != NULL ? plan_json(report) : json_null();
    json_t *simulation = report->simulation != NULL ? simulation_json(report) : json_null();
    return json_pack("{s:o, s:o, s:o}", "plan", plan, "simulation", simulation, "warnings",
                     warnings); /* NULL fails the whole */
}
