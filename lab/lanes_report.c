/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>

#include "lab/lanes_report.h"
#include "lab/words.h"

void tl_lanes_report_head(struct tl_text *out)
{
    tl_text_append(out, "  %-24s %-10s %9s %9s %11s %11s\n", "lane", "", "admitted", "passed by",
                   "median", "nine in ten");
}

static void time_of(int64_t ms, char text[TL_WORDS_MAX])
{
    if (ms >= 0)
        tl_words_time(ms, text, TL_WORDS_MAX);
    else
        snprintf(text, TL_WORDS_MAX, "-");
}

void tl_lanes_report_row(const struct tl_plan_lanes *lanes, unsigned lane, const char *source,
                         const struct tl_lane_waits *waits, struct tl_text *out)
{
    char name[TL_LANE_NAME_MAX + 24];
    char median[TL_WORDS_MAX], most[TL_WORDS_MAX];
    if (lanes->weights.n > 0)
        snprintf(name, sizeof(name), "%.15s, weight %" PRIu32, lanes->names[lane],
                 lanes->weights.of[lane]);
    else
        snprintf(name, sizeof(name), "%.24s", lanes->names[lane]);
    time_of(waits->median_ms, median);
    time_of(waits->most_ms, most);
    tl_text_append(out, "  %-24s %-10s %9" PRIu64 " %9" PRIu64 " %11s %11s\n", name, source,
                   waits->admitted, waits->passed, median, most);
}

void tl_lanes_report_starved(const struct tl_plan_lanes *lanes, unsigned lane,
                             const struct tl_lane_waits *waits, struct tl_text *out)
{
    if (!tl_lane_starved(lanes, lane, waits))
        return;
    tl_text_append(out,
                   "Lane %s starved: %" PRIu64 " visitors of other lanes were admitted in a row "
                   "while it had some.%s\n",
                   lanes->names[lane], waits->passed,
                   lanes->weights.n == 0
                       ? "\n    Without lane_weights a lane is served only while those before it "
                         "are empty: set lane_weights."
                       : "");
}

static json_t *time_json(int64_t ms)
{
    return ms >= 0 ? json_integer((json_int_t)ms) : json_null();
}

json_t *tl_lanes_report_json(const struct tl_plan_lanes *lanes, unsigned lane,
                             const struct tl_lane_waits *waits)
{
    json_t *weight =
        lanes->weights.n > 0 ? json_integer((json_int_t)lanes->weights.of[lane]) : NULL;
    return json_pack("{s:s, s:o*, s:I, s:I, s:{s:o, s:o}, s:I, s:b}", "lane", lanes->names[lane],
                     "weight", weight, "arrived", (json_int_t)waits->arrived, "admitted",
                     (json_int_t)waits->admitted, "waits", "median_ms", time_json(waits->median_ms),
                     "p90_ms", time_json(waits->most_ms), "passed_by", (json_int_t)waits->passed,
                     "starved", (int)tl_lane_starved(lanes, lane, waits));
}
