/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <string.h>

#include "common/base/units.h"

#include "ctl/calls/calls.h"

enum { SHOWN = 64 };

static void write_line(const json_t *stats, struct tl_text *out)
{
    char oldest[SHOWN], p50[SHOWN], p90[SHOWN];
    const json_t *waited = json_object_get(stats, "waited");
    const json_t *claimed = json_object_get(stats, "claimed");
    tl_json_wait(stats, "oldest_wait_ms", oldest, sizeof(oldest));
    tl_json_wait(waited, "p50_ms", p50, sizeof(p50));
    tl_json_wait(waited, "p90_ms", p90, sizeof(p90));
    tl_text_append(out, "  waiting     %" PRIu64 ", the first for %s\n",
                   tl_json_count(stats, "waiting"), oldest);
    tl_text_append(out, "  active      %" PRIu64 ", limit ", tl_json_count(stats, "active"));
    tl_row_limit(stats, out);
    if (json_is_integer(claimed))
        tl_text_append(out, ", %" PRIu64 " have come", (uint64_t)json_integer_value(claimed));
    tl_text_append(out, "\n  waited      half of them under %s, nine of ten under %s\n", p50, p90);
}

/* "4 under 1 min, 2 under 5 min, 1 over 1 h": those who wait. */
static void write_waits(const json_t *stats, struct tl_text *out)
{
    const json_t *waits = json_object_get(stats, "waits");
    const json_t *bounds = json_object_get(waits, "bounds_ms");
    const json_t *waiting = json_object_get(waits, "waiting");
    const char *before = "  waits now   ";
    for (size_t i = 0; i < json_array_size(waiting); i++) {
        char bound[SHOWN];
        bool is_last = i >= json_array_size(bounds);
        json_int_t n = json_integer_value(json_array_get(waiting, i));
        json_int_t ms = json_integer_value(json_array_get(bounds, is_last ? i - 1 : i));
        tl_terminal_duration(ms, bound, sizeof(bound));
        if (n > 0) {
            tl_text_append(out, "%s%" JSON_INTEGER_FORMAT " %s %s", before, n,
                           is_last ? "over" : "under", bound);
            before = ", ";
        }
    }
    if (tl_json_number(waits, "not_known") > 0) {
        tl_text_append(out, "%s%" JSON_INTEGER_FORMAT " not known", before,
                       tl_json_number(waits, "not_known"));
        before = ", ";
    }
    if (before[0] == ',')
        tl_text_append(out, "\n");
}

/* What came true of the waits that visitors were told. */
static void write_eta(const json_t *stats, struct tl_text *out)
{
    const json_t *eta = json_object_get(stats, "eta");
    double judged = (double)tl_json_number(eta, "judged");
    if (judged < 1)
        return;
    tl_text_append(out,
                   "  estimates   %.0f %% of %.0f held in the last hour, %.0f %% came in sooner, "
                   "%.0f %% later; off by %.0f %% on average\n",
                   json_number_value(json_object_get(eta, "inside_percent")), judged,
                   100 * (double)tl_json_number(eta, "early") / judged,
                   100 * (double)tl_json_number(eta, "late") / judged,
                   json_number_value(json_object_get(eta, "error_percent")));
}

static void write_counts(const json_t *stats, struct tl_text *out)
{
    static const char *const names[][2] = {
        {"joined", "joined"},   {"admitted", "admitted"},  {"completed", "completed"},
        {"expired", "expired"}, {"no-shows", "unclaimed"}, {"absent", "absent"},
        {"left", "left"},       {"removed", "removed"},
    };
    const json_t *rates = json_object_get(stats, "per_minute");
    tl_text_append(out, "  %-10s  %12s  %12s\n", "", "in all", "a minute");
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char rate[SHOWN];
        tl_row_per_minute(stats, names[i][1], rate, sizeof(rate));
        tl_text_append(out, "  %-10s  %12" PRIu64 "  %12s\n", names[i][0],
                       tl_row_total(stats, names[i][1]), json_is_object(rates) ? rate : "-");
    }
}

static void write_lanes(const json_t *stats, struct tl_text *out)
{
    size_t i;
    json_t *lane;
    const json_t *lanes = json_object_get(stats, "lanes");
    if (json_array_size(lanes) < 2)
        return;
    json_array_foreach(lanes, i, lane)
    {
        char oldest[SHOWN];
        tl_json_wait(lane, "oldest_wait_ms", oldest, sizeof(oldest));
        tl_text_append(out, "  lane %-16s %" PRIu64 " wait, the first for %s\n",
                       tl_json_text(lane, "name"), tl_json_count(lane, "waiting"), oldest);
    }
}

/* Which programs serve the queue; "missing" for a role that nobody has. */
static void write_health(const json_t *stats, struct tl_text *out)
{
    size_t i, workers = 0;
    json_t *program;
    const json_t *store = json_object_get(stats, "store");
    json_array_foreach(json_object_get(stats, "programs"), i, program)
    {
        const char *role = tl_json_text(program, "role"), *id = tl_json_text(program, "id");
        if (strcmp(role, "worker") == 0)
            workers++;
        else
            tl_text_append(out, "  %-10s  %s\n", role, *id != '\0' ? id : "missing: start one");
    }
    tl_text_append(out, "  workers     %zu\n", workers);
    char used[TL_UNITS_TEXT_MAX], limit[TL_UNITS_TEXT_MAX];
    uint64_t most = tl_json_count(store, "memory_limit");
    snprintf(used, sizeof(used), "%.1f MiB",
             (double)tl_json_count(store, "memory_used") / (1024 * 1024));
    snprintf(limit, sizeof(limit), "%.1f MiB", (double)most / (1024 * 1024));
    tl_text_append(
        out, "  store       Redis %s, %s of %s, answers in %.1f ms%s\n",
        tl_json_text(store, "version"), used, most > 0 ? limit : "no limit",
        json_number_value(json_object_get(store, "latency_ms")),
        json_is_true(json_object_get(store, "persists")) ? "" : "; it cannot write to its disk");
}

static void write_webhooks(const json_t *stats, struct tl_text *out)
{
    size_t i;
    json_t *webhook;
    json_array_foreach(json_object_get(stats, "webhooks"), i, webhook)
    {
        tl_text_append(out, "  webhook %-10s ", tl_json_text(webhook, "name"));
        tl_webhook_words(webhook, out);
        if (tl_json_number(webhook, "pending") > 0)
            tl_text_append(out, ", %" JSON_INTEGER_FORMAT " entries wait",
                           tl_json_number(webhook, "pending"));
        if (tl_json_number(webhook, "lost") > 0)
            tl_text_append(out, ", %" JSON_INTEGER_FORMAT " are lost",
                           tl_json_number(webhook, "lost"));
        tl_text_append(out, "\n");
    }
}

void tl_write_stats(const json_t *stats)
{
    char at[TL_UNITS_TEXT_MAX];
    const char *notice = tl_json_text(stats, "notice");
    struct tl_text out = {0};
    tl_terminal_time_of(tl_json_text(stats, "at"), at, sizeof(at));
    tl_text_append(&out, "%s: mode %s, phase ", tl_json_text(stats, "queue"),
                   tl_json_text(stats, "mode"));
    tl_row_phase(stats, &out);
    tl_text_append(&out, ", at %s\n", at);
    if (*notice != '\0')
        tl_text_append(&out, "  notice      %s\n", notice);
    write_line(stats, &out);
    write_waits(stats, &out);
    write_eta(stats, &out);
    write_lanes(stats, &out);
    write_counts(stats, &out);
    write_health(stats, &out);
    write_webhooks(stats, &out);
    tl_row_signs(stats, &out);
    tl_text_print(&out);
}
