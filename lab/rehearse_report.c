/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "lab/report.h"

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

/* ---- JSON ---- */

/* Time of the sale. */
static int64_t of_sale(const struct tl_rehearse_report *report, int64_t ms)
{
    return ms >= 0 ? ms * (int64_t)report->speed : -1;
}

static json_t *reasons_json(const struct tl_reasons *reasons)
{
    json_t *list = json_array();
    for (size_t i = 0; i < reasons->n; i++)
        json_array_append_new(list, json_pack("{s:o, s:I, s:s*}", "reason",
                                              tl_report_text(reasons->list[i].name), "count",
                                              (json_int_t)reasons->list[i].count, "advice",
                                              tl_rehearse_advice(reasons->list[i].name)));
    return list;
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

static json_t *lane_json(const struct tl_rehearse_report *report, unsigned lane)
{
    const struct tl_lane_figures *figures = &report->lane_figures[lane];
    struct tl_lane_waits waits = figures->waits;
    waits.median_ms = of_sale(report, waits.median_ms);
    waits.most_ms = of_sale(report, waits.most_ms);
    json_t *entry = tl_report_lane(report->lanes, lane, &waits);
    json_t *told = json_pack("{s:I, s:I, s:o, s:o}", "promises", (json_int_t)figures->promises,
                             "promises_kept", (json_int_t)figures->kept, "told_ms",
                             tl_report_ms(of_sale(report, figures->told_ms)), "true_ms",
                             tl_report_ms(of_sale(report, figures->true_ms)));
    json_object_update(entry, told);
    json_decref(told);
    return entry;
}

static json_t *lanes_json(const struct tl_rehearse_report *report, bool simulated)
{
    json_t *list = json_array();
    for (unsigned lane = 0; lane < report->lanes->n; lane++)
        json_array_append_new(
            list, simulated ? tl_report_lane(report->lanes, lane, &report->simulation->lanes[lane])
                            : lane_json(report, lane));
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
        tl_report_ms(of_sale(report, rehearsal->empty_ms)), "end_ms",
        (json_int_t)of_sale(report, rehearsal->end_ms), "promises", (json_int_t)figures->promises,
        "promises_kept", (json_int_t)figures->kept, "overtaken", (json_int_t)figures->overtaken,
        "set_back", (json_int_t)rehearsal->set_back, "requests", (json_int_t)rehearsal->requests,
        "refused", reasons_json(&rehearsal->refused), "errors", reasons_json(&rehearsal->errors),
        "stopped", (int)rehearsal->stopped, "overtime", (int)rehearsal->overtime, "lanes",
        lanes_json(report, false));
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
                     tl_report_ms(plan->last_empty_ms), "end_ms", (json_int_t)plan->end_ms, "lanes",
                     lanes_json(report, true));
}

json_t *tl_rehearse_report_json(const struct tl_rehearse_report *report)
{
    json_t *broken = json_array();
    for (size_t i = 0; i < report->broken->n; i++)
        json_array_append_new(broken, json_string(report->broken->texts[i]));
    return json_pack("{s:s, s:s, s:o, s:s, s:o, s:I, s:b, s:o, s:o, s:o}", "queue", report->queue,
                     "scratch_queue", report->scratch, "server", tl_report_text(report->server),
                     "settings_from", report->source, "visitors", tl_report_text(report->visitors),
                     "speed", (json_int_t)report->speed, "kept", (int)(report->broken->n == 0),
                     "not_kept", broken, "rehearsed", rehearsed_json(report), "simulated",
                     simulated_json(report));
}

/* ---- text ---- */

/* The sum of the numbers at some paths ("fates.served+fates.cut_off"; one after '-' is taken off)
 * in words; NULL: there is none. */
static struct tl_words words_of(const json_t *side, const char *paths, bool is_time)
{
    double sum = 0, sign = 1;
    if (paths == NULL)
        return (struct tl_words){"-"};
    if (is_time)
        return tl_report_time(side, paths);
    for (const char *at = paths; *at != '\0';) {
        char path[40];
        size_t length = strcspn(at, "+-");
        snprintf(path, sizeof(path), "%.*s", (int)length, at);
        sum += sign * tl_report_number(side, path);
        sign = at[length] == '-' ? -1 : 1;
        at += length + (at[length] != '\0' ? 1 : 0);
    }
    return tl_words_number(sum, 0);
}

static void write_rows(const json_t *rehearsed, const json_t *simulated, struct tl_text *out)
{
    static const struct {
        const char *name, *rehearsed, *simulated;
        bool is_time;
    } rows[] = {
        {"arrived", "arrived", "arrived", false},
        {"joined", "joined", "arrived-refused", false},
        {"refused", "fates.refused", "refused", false},
        {"served", "fates.served+fates.cut_off", "served", false},
        {"...cut off by the session", "fates.cut_off", "cut_off", false},
        {"gave up, left or no-show", "fates.gave_up+fates.left+fates.no_shows", "gave_up+no_shows",
         false},
        {"wait: median", "waits.median_ms", "waits.median_ms", true},
        {"wait: nine in ten", "waits.p90_ms", NULL, true},
        {"wait: longest", "waits.longest_ms", "waits.longest_ms", true},
        {"longest line", "longest_line", "longest_line", false},
        {"...after", "longest_line_at_ms", "longest_line_at_ms", true},
        {"most active at once", "most_active", "most_active", false},
        {"the line was empty after", "line_empty_from_ms", "line_empty_from_ms", true},
        {"all were gone after", "end_ms", "end_ms", true},
    };
    tl_text_append(out, "  %-28s  %14s  %14s\n", "", "rehearsed", "simulated");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        tl_text_append(out, "  %-28s  %14s  %14s\n", rows[i].name,
                       words_of(rehearsed, rows[i].rehearsed, rows[i].is_time).text,
                       words_of(simulated, rows[i].simulated, rows[i].is_time).text);
}

static void write_reasons(const char *title, const struct tl_reasons *reasons, struct tl_text *out)
{
    for (size_t i = 0; i < reasons->n; i++) {
        const char *advice = tl_rehearse_advice(reasons->list[i].name);
        tl_text_append(out, "%s%s times %s\n", i == 0 ? title : "",
                       tl_words_whole(reasons->list[i].count).text, reasons->list[i].name);
        if (advice != NULL)
            tl_text_append(out, "    %s\n", advice);
    }
}

static void write_kept(const struct tl_queue_settings *settings, const json_t *rehearsed,
                       struct tl_text *out)
{
    double promises = tl_report_number(rehearsed, "promises");
    if (settings->policy != TL_POLICY_RATE)
        tl_text_append(out, "Capacity: %s at most, as visitors were told; the settings allow %s.\n",
                       tl_report_count(rehearsed, "most_active").text,
                       tl_words_whole(settings->capacity).text);
    if (settings->policy != TL_POLICY_COUNTER)
        tl_text_append(
            out, "Admissions in %s: %s at most, %s on average; the settings allow %s%s%s.\n",
            tl_words_time(settings->rate.every_ms).text,
            tl_report_count(rehearsed, "admissions_per_period.most").text,
            tl_words_number(tl_report_number(rehearsed, "admissions_per_period.average"), 1).text,
            tl_words_whole(settings->rate.admit).text,
            settings->rate.burst > 0 ? " and a burst of " : "",
            settings->rate.burst > 0 ? tl_words_whole(settings->rate.burst).text : "");
    if (promises > 0)
        tl_text_append(out,
                       "The page's range of the wait came true for %s of %s (%.0f %%; the first "
                       "range that each was told).\n",
                       tl_report_count(rehearsed, "promises_kept").text,
                       tl_report_count(rehearsed, "promises").text,
                       100 * tl_report_number(rehearsed, "promises_kept") / promises);
}

void tl_rehearse_report_text(const struct tl_rehearse_report *report, const json_t *json,
                             struct tl_text *out)
{
    const struct tl_rehearsal *rehearsal = report->rehearsal;
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
    if (rehearsal->stopped)
        tl_text_append(out, "  It was stopped after %s: these are the figures up to then\n",
                       tl_report_time(rehearsed, "end_ms").text);
    tl_text_append(out, "\n");
    write_rows(rehearsed, simulated, out);
    tl_report_lanes(json_object_get(rehearsed, "lanes"), json_object_get(simulated, "lanes"), out);
    tl_text_append(out, "\n");
    write_kept(report->settings, rehearsed, out);
    tl_text_append(out, "Requests: %s.\n", tl_report_count(rehearsed, "requests").text);
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
