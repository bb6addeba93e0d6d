/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "lab/lanes_report.h"
#include "lab/rehearse_report.h"
#include "lab/words.h"

/* A text of its own, so that several fit into one call. */
struct words {
    char text[TL_WORDS_MAX];
};

static struct words number(uint64_t value)
{
    struct words words = {""};
    tl_words_number((double)value, 0, words.text, sizeof(words.text));
    return words;
}

static struct words decimal(double value)
{
    struct words words = {""};
    tl_words_number(value, 1, words.text, sizeof(words.text));
    return words;
}

static struct words span(int64_t ms)
{
    struct words words = {"-"};
    if (ms >= 0)
        tl_words_time(ms, words.text, sizeof(words.text));
    return words;
}

/* Time of the sale. */
static int64_t of_sale(const struct tl_rehearse_report *report, int64_t ms)
{
    return ms >= 0 ? ms * (int64_t)report->speed : -1;
}

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
        {"blocked", "this machine's address is blocked: `tellerline blocks`"},
        {"not-trusted", "the workers do not know the API key of this machine's secrets.api_keys"},
        {" full", "max_waiting was reached, as the settings want it"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (strstr(reason, rows[i].part) != NULL)
            return rows[i].advice;
    }
    return NULL;
}

/* ---- text ---- */

static void row(struct tl_text *out, const char *name, struct words rehearsed, struct words planned)
{
    tl_text_append(out, "  %-28s  %14s  %14s\n", name, rehearsed.text, planned.text);
}

static uint64_t gone(const struct tl_figures *figures)
{
    return figures->fates[TL_FATE_GAVE_UP] + figures->fates[TL_FATE_LEFT] +
           figures->fates[TL_FATE_NO_SHOW];
}

static void write_rows(const struct tl_rehearse_report *report, struct tl_text *out)
{
    static const struct words none = {"-"};
    const struct tl_figures *figures = report->figures;
    const struct tl_rehearsal *rehearsal = report->rehearsal;
    const struct tl_simulation *plan = report->simulation;
    row(out, "", (struct words){"rehearsed"}, (struct words){"simulated"});
    row(out, "arrived", number(figures->arrived), number(plan->arrived));
    row(out, "joined", number(figures->joined), number(plan->arrived - plan->refused));
    row(out, "refused", number(figures->fates[TL_FATE_REFUSED]), number(plan->refused));
    row(out, "served", number(figures->fates[TL_FATE_SERVED] + figures->fates[TL_FATE_CUT_OFF]),
        number(plan->served));
    row(out, "...cut off by the session", number(figures->fates[TL_FATE_CUT_OFF]),
        number(plan->cut_off));
    row(out, "gave up, left or no-show", number(gone(figures)),
        number(plan->gave_up + plan->no_shows));
    row(out, "wait: median", span(of_sale(report, figures->wait_median_ms)),
        span(plan->wait_median_ms));
    row(out, "wait: nine in ten", span(of_sale(report, figures->wait_most_ms)), none);
    row(out, "wait: longest", span(of_sale(report, figures->wait_longest_ms)),
        span(plan->wait_longest_ms));
    row(out, "longest line", number(rehearsal->most_waiting), number(plan->longest_line));
    row(out, "...after", span(of_sale(report, rehearsal->most_waiting_ms)),
        span(plan->longest_line_ms));
    row(out, "most active at once", number(rehearsal->most_active), number(plan->most_active));
    row(out, "the line was empty after", span(of_sale(report, rehearsal->empty_ms)),
        span(plan->last_empty_ms));
    row(out, "all were gone after", span(of_sale(report, rehearsal->end_ms)), span(plan->end_ms));
}

static struct tl_lane_waits lane_of_sale(const struct tl_rehearse_report *report, unsigned lane)
{
    struct tl_lane_waits waits = report->lane_figures[lane].waits;
    waits.median_ms = of_sale(report, waits.median_ms);
    waits.most_ms = of_sale(report, waits.most_ms);
    return waits;
}

static void write_lanes(const struct tl_rehearse_report *report, struct tl_text *out)
{
    if (report->lanes->n < 2)
        return;
    tl_text_append(out, "\n");
    tl_lanes_report_head(out);
    for (unsigned lane = 0; lane < report->lanes->n; lane++) {
        const struct tl_lane_waits waits = lane_of_sale(report, lane);
        if (waits.arrived == 0)
            continue;
        tl_lanes_report_row(report->lanes, lane, "rehearsed", &waits, out);
        tl_lanes_report_row(report->lanes, lane, "simulated", &report->simulation->lanes[lane],
                            out);
    }
    tl_text_append(out, "\n");
    for (unsigned lane = 0; lane < report->lanes->n; lane++) {
        const struct tl_lane_figures *figures = &report->lane_figures[lane];
        if (figures->promises > 0)
            tl_text_append(out,
                           "Lane %s: told to wait %s, waited %s (medians); the range came true for "
                           "%s of %s.\n",
                           report->lanes->names[lane], span(of_sale(report, figures->told_ms)).text,
                           span(of_sale(report, figures->true_ms)).text, number(figures->kept).text,
                           number(figures->promises).text);
        const struct tl_lane_waits waits = lane_of_sale(report, lane);
        tl_lanes_report_starved(report->lanes, lane, &waits, out);
    }
}

static void write_reasons(const char *title, const struct tl_reasons *reasons, struct tl_text *out)
{
    for (size_t i = 0; i < reasons->n; i++) {
        const char *advice = tl_rehearse_advice(reasons->list[i].name);
        tl_text_append(out, "%s%s times %s\n", i == 0 ? title : "",
                       number(reasons->list[i].count).text, reasons->list[i].name);
        if (advice != NULL)
            tl_text_append(out, "    %s\n", advice);
    }
}

static void write_kept(const struct tl_rehearse_report *report, struct tl_text *out)
{
    const struct tl_figures *figures = report->figures;
    const struct tl_queue_settings *settings = report->settings;
    if (settings->policy != TL_POLICY_RATE)
        tl_text_append(out, "Capacity: %s at most, as visitors were told; the settings allow %s.\n",
                       number(report->rehearsal->most_active).text,
                       number(settings->capacity).text);
    if (settings->policy != TL_POLICY_COUNTER)
        tl_text_append(out,
                       "Admissions in %s: %s at most, %s on average; the settings allow %s%s%s.\n",
                       span(settings->rate.every_ms).text, number(figures->per_period).text,
                       decimal(figures->per_period_average).text, number(settings->rate.admit).text,
                       settings->rate.burst > 0 ? " and a burst of " : "",
                       settings->rate.burst > 0 ? number(settings->rate.burst).text : "");
    if (figures->promises > 0)
        tl_text_append(out,
                       "The page's range of the wait came true for %s of %s (%.0f %%; the first "
                       "range that each was told).\n",
                       number(figures->kept).text, number(figures->promises).text,
                       100 * (double)figures->kept / (double)figures->promises);
}

void tl_rehearse_report_text(const struct tl_rehearse_report *report, struct tl_text *out)
{
    const struct tl_rehearsal *rehearsal = report->rehearsal;
    tl_text_append(out, "Rehearsal of %s, with the settings %s, over %s\n  %s\n", report->queue,
                   report->source, report->server, report->visitors);
    if (report->speed > 1)
        tl_text_append(out,
                       "  %" PRIu64 " times faster: the times of the scratch queue were divided by "
                       "that, and those below\n  are multiplied with it; so %s of the machine "
                       "count as %s of the sale\n",
                       report->speed, span(100).text, span(100 * (int64_t)report->speed).text);
    if (rehearsal->stopped)
        tl_text_append(out, "  It was stopped after %s: these are the figures up to then\n",
                       span(of_sale(report, rehearsal->end_ms)).text);
    tl_text_append(out, "\n");
    write_rows(report, out);
    write_lanes(report, out);
    tl_text_append(out, "\n");
    write_kept(report, out);
    tl_text_append(out, "Requests: %s.\n", number(rehearsal->requests).text);
    write_reasons("Refused:\n", &rehearsal->refused, out);
    write_reasons("Errors over HTTP:\n", &rehearsal->errors, out);
    if (rehearsal->errors.n == 0)
        tl_text_append(out, "Errors over HTTP: none.\n");
    tl_text_append(out, "\n");
    for (size_t i = 0; i < report->broken->n; i++)
        tl_text_append(out, "NOT KEPT: %s.\n", report->broken->texts[i]);
    if (report->broken->n == 0)
        tl_text_append(out, "What the settings promise was kept%s.\n",
                       rehearsal->stopped ? " until then" : "");
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

static json_t *reasons_json(const struct tl_reasons *reasons)
{
    json_t *list = json_array();
    for (size_t i = 0; i < reasons->n; i++)
        append(&list, json_pack("{s:s, s:I, s:s*}", "reason", reasons->list[i].name, "count",
                                (json_int_t)reasons->list[i].count, "advice",
                                tl_rehearse_advice(reasons->list[i].name)));
    return list;
}

static json_t *time_json(int64_t ms)
{
    return ms >= 0 ? json_integer((json_int_t)ms) : json_null();
}

static json_t *fates_json(const struct tl_figures *figures)
{
    const uint64_t *fates = figures->fates;
    return json_pack(
        "{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "served",
        (json_int_t)fates[TL_FATE_SERVED], "cut_off", (json_int_t)fates[TL_FATE_CUT_OFF],
        "no_shows", (json_int_t)fates[TL_FATE_NO_SHOW], "gave_up",
        (json_int_t)fates[TL_FATE_GAVE_UP], "left", (json_int_t)fates[TL_FATE_LEFT], "refused",
        (json_int_t)fates[TL_FATE_REFUSED], "dropped", (json_int_t)fates[TL_FATE_DROPPED], "failed",
        (json_int_t)fates[TL_FATE_FAILED], "not_done", (json_int_t)fates[TL_FATE_OPEN]);
}

static json_t *lanes_json(const struct tl_rehearse_report *report)
{
    json_t *list = json_array();
    for (unsigned lane = 0; lane < report->lanes->n; lane++) {
        const struct tl_lane_figures *figures = &report->lane_figures[lane];
        const struct tl_lane_waits waits = lane_of_sale(report, lane);
        json_t *entry = tl_lanes_report_json(report->lanes, lane, &waits);
        json_t *told = json_pack("{s:I, s:I, s:o, s:o}", "promises", (json_int_t)figures->promises,
                                 "promises_kept", (json_int_t)figures->kept, "told_ms",
                                 time_json(of_sale(report, figures->told_ms)), "true_ms",
                                 time_json(of_sale(report, figures->true_ms)));
        bool ok = told != NULL && json_object_update(entry, told) == 0;
        json_decref(told);
        append(&list, ok ? json_incref(entry) : NULL);
        json_decref(entry);
    }
    return list;
}

static json_t *simulated_lanes_json(const struct tl_rehearse_report *report)
{
    json_t *list = json_array();
    for (unsigned lane = 0; lane < report->lanes->n; lane++)
        append(&list, tl_lanes_report_json(report->lanes, lane, &report->simulation->lanes[lane]));
    return list;
}

static json_t *rehearsed_json(const struct tl_rehearse_report *report)
{
    const struct tl_rehearsal *rehearsal = report->rehearsal;
    const struct tl_figures *figures = report->figures;
    json_t *waits = json_pack("{s:I, s:I, s:I}", "median_ms",
                              (json_int_t)of_sale(report, figures->wait_median_ms), "p90_ms",
                              (json_int_t)of_sale(report, figures->wait_most_ms), "longest_ms",
                              (json_int_t)of_sale(report, figures->wait_longest_ms));
    json_t *periods =
        report->settings->policy == TL_POLICY_COUNTER
            ? NULL
            : json_pack("{s:I, s:I, s:f}", "every_ms", (json_int_t)report->settings->rate.every_ms,
                        "most", (json_int_t)figures->per_period, "average",
                        figures->per_period_average);
    return json_pack(
        "{s:I, s:I, s:I, s:o, s:o, s:o*, s:I, s:I, s:I, s:I, s:o, s:I, s:I, s:I, s:I, s:I, s:I, "
        "s:o, s:o, s:b, s:b, s:o}",
        "arrived", (json_int_t)figures->arrived, "joined", (json_int_t)figures->joined, "admitted",
        (json_int_t)figures->admitted, "fates", fates_json(figures), "waits", waits,
        "admissions_per_period", periods, "longest_line", (json_int_t)rehearsal->most_waiting,
        "longest_line_at_ms", (json_int_t)of_sale(report, rehearsal->most_waiting_ms),
        "most_active", (json_int_t)rehearsal->most_active, "most_on_the_site",
        (json_int_t)rehearsal->most_present, "line_empty_from_ms",
        time_json(of_sale(report, rehearsal->empty_ms)), "end_ms",
        (json_int_t)of_sale(report, rehearsal->end_ms), "promises", (json_int_t)figures->promises,
        "promises_kept", (json_int_t)figures->kept, "overtaken", (json_int_t)figures->overtaken,
        "set_back", (json_int_t)rehearsal->set_back, "requests", (json_int_t)rehearsal->requests,
        "refused", reasons_json(&rehearsal->refused), "errors", reasons_json(&rehearsal->errors),
        "stopped", (int)rehearsal->stopped, "overtime", (int)rehearsal->overtime, "lanes",
        lanes_json(report));
}

static json_t *simulated_json(const struct tl_rehearse_report *report)
{
    const struct tl_simulation *plan = report->simulation;
    json_t *waits = json_pack("{s:I, s:I}", "median_ms", (json_int_t)plan->wait_median_ms,
                              "longest_ms", (json_int_t)plan->wait_longest_ms);
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:I, s:I, s:I, s:o, s:I, s:o}", "arrived",
                     (json_int_t)plan->arrived, "served", (json_int_t)plan->served, "no_shows",
                     (json_int_t)plan->no_shows, "gave_up", (json_int_t)plan->gave_up, "refused",
                     (json_int_t)plan->refused, "cut_off", (json_int_t)plan->cut_off, "waits",
                     waits, "longest_line", (json_int_t)plan->longest_line, "longest_line_at_ms",
                     (json_int_t)plan->longest_line_ms, "most_active",
                     (json_int_t)plan->most_active, "line_empty_from_ms",
                     time_json(plan->last_empty_ms), "end_ms", (json_int_t)plan->end_ms, "lanes",
                     simulated_lanes_json(report));
}

json_t *tl_rehearse_report_json(const struct tl_rehearse_report *report)
{
    json_t *broken = json_array();
    for (size_t i = 0; i < report->broken->n; i++)
        append(&broken, json_string(report->broken->texts[i]));
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:I, s:b, s:o, s:o, s:o}", "queue", report->queue,
                     "scratch_queue", report->scratch, "server", report->server, "settings_from",
                     report->source, "visitors", report->visitors, "speed",
                     (json_int_t)report->speed, "kept", (int)(report->broken->n == 0), "not_kept",
                     broken, "rehearsed", rehearsed_json(report), "simulated",
                     simulated_json(report)); /* NULL fails the whole */
}
