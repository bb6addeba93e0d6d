/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "lab/report.h"

double tl_report_number(const json_t *report, const char *path)
{
    const char *dot = strchr(path, '.');
    const json_t *value = dot != NULL ? json_object_getn(report, path, (size_t)(dot - path))
                                      : json_object_get(report, path);
    if (dot != NULL)
        return tl_report_number(value, dot + 1);
    return json_is_number(value) ? json_number_value(value) : -1;
}

struct tl_words tl_report_count(const json_t *report, const char *path)
{
    return tl_words_number(tl_report_number(report, path), 0);
}

struct tl_words tl_report_time(const json_t *report, const char *path)
{
    return tl_words_time((int64_t)tl_report_number(report, path));
}

json_t *tl_report_text(const char *text)
{
    json_t *value = json_string(text);
    return value != NULL ? value : json_null();
}

json_t *tl_report_ms(int64_t ms)
{
    return ms >= 0 ? json_integer((json_int_t)ms) : json_null();
}

json_t *tl_report_lane(const struct tl_plan_lanes *lanes, unsigned lane,
                       const struct tl_lane_waits *waits)
{
    json_t *weight =
        lanes->weights.n > 0 ? json_integer((json_int_t)lanes->weights.of[lane]) : NULL;
    return json_pack("{s:s, s:o*, s:I, s:I, s:{s:o, s:o}, s:I, s:b}", "lane", lanes->names[lane],
                     "weight", weight, "arrived", (json_int_t)waits->arrived, "admitted",
                     (json_int_t)waits->admitted, "waits", "median_ms",
                     tl_report_ms(waits->median_ms), "p90_ms", tl_report_ms(waits->most_ms),
                     "passed_by", (json_int_t)waits->passed, "starved",
                     (int)tl_lane_starved(lanes, lane, waits));
}

static void write_row(const json_t *lane, const char *source, struct tl_text *out)
{
    char name[TL_LANE_NAME_MAX + 24];
    const char *text = json_string_value(json_object_get(lane, "lane"));
    double weight = tl_report_number(lane, "weight");
    if (weight >= 0)
        snprintf(name, sizeof(name), "%.15s, weight %.0f", text, weight);
    else
        snprintf(name, sizeof(name), "%.24s", text);
    tl_text_append(out, "  %-24s %-10s %9.0f %9.0f %11s %11s\n", name, source,
                   tl_report_number(lane, "admitted"), tl_report_number(lane, "passed_by"),
                   tl_report_time(lane, "waits.median_ms").text,
                   tl_report_time(lane, "waits.p90_ms").text);
}

static void write_sentences(const json_t *lane, struct tl_text *out)
{
    const char *name = json_string_value(json_object_get(lane, "lane"));
    if (tl_report_number(lane, "promises") > 0)
        tl_text_append(
            out,
            "Lane %s: told to wait %s, waited %s (medians); the range came true for "
            "%s of %s.\n",
            name, tl_report_time(lane, "told_ms").text, tl_report_time(lane, "true_ms").text,
            tl_report_count(lane, "promises_kept").text, tl_report_count(lane, "promises").text);
    if (json_is_true(json_object_get(lane, "starved")))
        tl_text_append(out,
                       "Lane %s starved: %.0f visitors of other lanes were admitted in a row "
                       "while it had some.%s\n",
                       name, tl_report_number(lane, "passed_by"),
                       tl_report_number(lane, "weight") < 0
                           ? "\n    Without lane_weights a lane is served only while those before "
                             "it are empty: set lane_weights."
                           : "");
}

void tl_report_lanes(const json_t *rehearsed, const json_t *simulated, struct tl_text *out)
{
    const size_t n = json_array_size(simulated);
    if (n < 2)
        return;
    tl_text_append(out, "\n  %-24s %-10s %9s %9s %11s %11s\n", "lane", "", "admitted", "passed by",
                   "median", "nine in ten");
    for (size_t i = 0; i < n; i++) {
        const json_t *lane = json_array_get(rehearsed, i);
        if (lane != NULL && tl_report_number(lane, "arrived") == 0)
            continue;
        if (lane != NULL)
            write_row(lane, "rehearsed", out);
        write_row(json_array_get(simulated, i), "simulated", out);
    }
    tl_text_append(out, "\n");
    for (size_t i = 0; i < n; i++)
        write_sentences(json_array_get(rehearsed != NULL ? rehearsed : simulated, i), out);
}
