/* SPDX-License-Identifier: Apache-2.0 */
#include "common/config/queue_table.h"
#include "common/config/checks.h"
#include "common/config/rows.h"

#define OWNER struct tl_queue_settings

const char *const tl_policy_names[] = {"counter", "rate", "both", NULL};
static const char *const probe_names[] = {"json", "prometheus", NULL};
const char *const tl_rate_shape_names[] = {"smooth", "batches", NULL};
static const char *const challenge_names[] = {"none", "work", "external", NULL};
static const char *const join_names[] = {"open", "invited", NULL};
static const char *const sharing_names[] = {"count", "warn", "refuse", NULL};
static const char *const mode_names[] = {"open",     "paused",      "draining", "closed",
                                         "sold_out", "passthrough", NULL};
static const char *const after_close_names[] = {"drain", "stop", NULL};
static const char *const order_names[] = {"arrival", "draw", NULL};
static const char *const store_error_names[] = {"closed", "open", NULL};

static const struct tl_setting queue_rows[] = {
    CHOICE(policy, "counter", tl_policy_names,
           "What limits admission: `counter` (active visitors, `capacity`), `rate` (admissions per "
           "time), or `both`."),
    ROW(capacity, capacity, NUMBER, .self = "max", .fallback = "300", .max = 10000000,
        .help = "How many visitors may be active at once (policies `counter` and `both`). Lowering "
                "it ends no session. `{min: 20, max: 300}`: it adapts to what the site reports "
                "([adaptive.md](adaptive.md))."),
    ROW(capacity.min, capacity_min, NUMBER, .fallback = "0", .max = 10000000,
        .help = "The lowest value of an adaptive capacity, where it begins: a number that the site "
                "can always handle. 0: the capacity is fixed."),
    NUMBER(overbook, "0", 0, 10000000,
           "How many visitors beyond `capacity` may be called, to make up for "
           "[no-shows](no-shows.md): at most `capacity`."),
    SHARE(adaptive.load_max, "80%", 1, 100,
          "A reported load above it cuts an adaptive capacity. Below nine tenths of all limits it "
          "may be raised."),
    DURATION(adaptive.latency_max, "0s", 0, MINUTES(10),
             "The same for a reported latency. `0s`: not judged."),
    SHARE(adaptive.errors_max, "5%", 1, 100, "The same for a reported share of failed requests."),
    DURATION(adaptive.every, "5s", SECONDS(1), MINUTES(60),
             "The capacity is raised at most once in this time."),
    SHARE(adaptive.raise, "2%", 1, 100,
          "By how much: a share of `capacity.max`, at least 1 visitor."),
    SHARE(adaptive.cut, "30%", 1, 90, "By how much it is cut: a share of the active visitors."),
    DURATION(adaptive.hold, "15s", SECONDS(1), MINUTES(60),
             "How long the capacity stays after a cut: sessions have to end first."),
    DURATION(adaptive.fresh, "15s", SECONDS(1), MINUTES(60),
             "How long a report counts. Without a newer one the capacity falls back to the last "
             "safe value."),
    NUMBER(
        rate.admit, "0", 0, 10000000,
        "Policies `rate` and `both` (refused while this is 0) admit at most this many visitors..."),
    DURATION(rate.every, "10s", MILLISECONDS(100), DAYS(1), "...in any window of this length."),
    CHOICE(rate.shape, "smooth", tl_rate_shape_names,
           "`smooth` spreads them over the window. `batches` admits a whole batch at once, then "
           "nobody until the window has passed. Unused places of a batch are lost."),
    NUMBER(rate.burst, "0", 0, 10000000,
           "With `smooth`: how many more may be admitted in a window, where the rate was not used "
           "up before."),
    DURATION(session_ttl, "10m", MILLISECONDS(100), DAYS(7), "How long a session lasts."),
    FLAG(session_sliding, "false",
         "`session_ttl` counts from the site's last `check` or `renew`, at most until "
         "`session_max`."),
    DURATION(session_max, "1h", MILLISECONDS(100), DAYS(7),
             "The longest a sliding session may last; at least `session_ttl`."),
    DURATION(claim_ttl, "2m", MILLISECONDS(100), DAYS(7),
             "How long an admitted visitor who makes no request keeps the slot."),
    DURATION(waiting_ttl, "10m", SECONDS(1), DAYS(7),
             "A waiting visitor not seen for this long loses the place."),
    DURATION(recovery_window, "1m", 0, DAYS(1),
             "After Redis lost the data of the queue: how long no one is admitted, so that "
             "visitors come back with their tickets. `0s`: the queue begins empty."),
    ROW(lanes, lanes, LANES, .fallback = "vip,normal", .min = 1, .max = TL_LANES_MAX,
        .help = "The lanes, in their order."),
    ROW(default_lane, default_lane, LANE, .fallback = "normal",
        .help = "The lane of visitors for whom none was named. When `lanes` is given without it: "
                "the last lane."),
    ROW(lane_weights, lane_weights, WEIGHTS, .fallback = "",
        .help = "Shares of the lanes, in their order: with `[3, 1]` three visitors of the first "
                "are admitted for one of the second, while both have visitors. Empty: a lane is "
                "served only while those before it are empty."),
    TIME(opens_at, "No one is admitted before this time."),
    TIME(closes_at, "From this time on no one can join."),
    CHOICE(after_close, "drain", after_close_names,
           "`drain` then serves the line to its end, `stop` admits no one."),
    CHOICE(order, "arrival", order_names,
           "The order of those who joined before `opens_at`: as they came (`arrival`), or [drawn "
           "by lot](openings.md) (`draw`). Later visitors are behind them."),
    CHOICE(join, "open", join_names, "`invited`: only with an invite, or by a trusted caller."),
    NUMBER(max_waiting, "0", 0, 1000000000,
           "How many visitors may wait at most; a join beyond it gets 503 `full`, and the page "
           "tries again. 0: any number."),
    SHARE(reopen.margin, "5%", 0, 50,
          "When the line was full: joins are accepted again once this share of `max_waiting` "
          "(rounded up) is free..."),
    DURATION(reopen.after, "10s", 0, DAYS(1), "...and this long after it became full."),
    CHOICE(challenge, "none", challenge_names,
           "What a join without an invite or API key must bring: `work` (proof of work by the "
           "page: half a second on an old phone, up to 16 times as long while many join), or "
           "`external` (a token of `challenge_service`, which every worker must know)."),
    CHOICE(on_store_error, "closed", store_error_names,
           "What `check` answers while Redis cannot be reached, about visitors the worker does not "
           "know: `closed` refuses them, `open` lets them through."),
    CHOICE(session_sharing, "count", sharing_names,
           "What `check` does when several clients use one session in turn: `count` it, also "
           "`warn` in the log, or also `refuse` the clients that came later."),
    CHOICE(mode, "open", mode_names,
           "What you want of the queue ([states.md](states.md)). Of the modes in the file only "
           "`passthrough` counts for a queue that exists, and SIGHUP reads it again."),
    TEXTS(closed_text, 500,
          "What the page says while the queue is closed, draining or over. Empty: a built-in "
          "sentence."),
    TEXTS(sold_out_text, 500, "The same while it is sold out."),
    TEXT(target_url, "", "Where an admitted visitor continues, `http://` or `https://`.",
         .check = tl_check_url),
};

_Static_assert(sizeof(queue_rows) / sizeof(queue_rows[0]) <= TL_QUEUE_ROWS_MAX,
               "struct tl_queue_config has a flag for each row");

const struct tl_setting *tl_queue_table(size_t *n)
{
    *n = sizeof(queue_rows) / sizeof(queue_rows[0]);
    return queue_rows;
}

#undef OWNER
#define OWNER struct tl_queue_config

static const struct tl_setting probe_rows[] = {
    TEXT(probe.url, "", "`http://` or `https://`. Empty: the site reports by itself.",
         .check = tl_check_url),
    CHOICE(probe.format, "json", probe_names, "`prometheus`: the text format of `/metrics`."),
    TEXT(
        probe.value, "",
        "`json`: the path to a number, such as `workers.busy` or `pools.0.used`. `prometheus`: a "
        "metric, whose series are added up, or one series with its labels, as the page writes it."),
    DECIMAL(probe.full, "1", 0, 1000000000, "The value that is a load of 100 %."),
    DURATION(probe.every, "2s", MILLISECONDS(100), MINUTES(60), "How often it is asked."),
    DURATION(probe.timeout, "1s", MILLISECONDS(10), SECONDS(30), "How long the answer may take."),
};

const struct tl_setting *tl_probe_table(size_t *n)
{
    *n = sizeof(probe_rows) / sizeof(probe_rows[0]);
    return probe_rows;
}

#undef OWNER
#define OWNER struct tl_event_page

static const struct tl_setting page_rows[] = {
    ROW(page.title, title, TEXTS, .fallback = "", .max = TL_EVENT_HEAD_MAX,
        .help = "What visitors wait for, also in the title of the browser's tab."),
    ROW(page.place, place, TEXTS, .fallback = "", .max = TL_EVENT_HEAD_MAX, .help = "Where."),
    ROW(page.date, date, TEXTS, .fallback = "", .max = TL_EVENT_HEAD_MAX,
        .help = "When: a text, or a time such as `2026-12-12T19:00:00+09:00`, shown in the "
                "visitor's language and time zone."),
    ROW(page.gradient, gradient, LIST, .fallback = "",
        .help = "Two or three colours behind title, place and date: `[\"#3b1a78\", \"#6d28d9\"]`. "
                "Refused if neither white nor dark text is readable on it. Without it and `image`: "
                "the accent colour."),
    ROW(page.image, image, STRING, .is_path = true, .fallback = "",
        .help = "File (.jpg, .jpeg, .png or .webp, at most 500 KB) instead of a gradient, darkened "
                "behind the text."),
    ROW(page.accent, accent, STRING, .fallback = "",
        .help = "Colour of buttons, links and the bar, with a contrast of 4.5 to 1 on a light "
                "page. On a dark page it is made lighter."),
    ROW(page.logo, logo, STRING, .is_path = true, .self = "light", .fallback = "",
        .help = "File (.svg, .png or .webp, at most 100 KiB) instead of `brand.logo`; or `{light: "
                "..., dark: ...}`."),
    ROW(page.logo.dark, logo_dark, STRING, .is_path = true, .fallback = "",
        .help = "The logo on a dark page."),
    ROW(page.help, help, STRING, .fallback = "",
        .help = "A link to help: `https://`, or a path of the worker's host."),
    ROW(page.texts.before, texts.before, TEXTS, .fallback = "", .max = TL_EVENT_MOMENT_MAX,
        .lines = true, .help = "Your text before the opening."),
    ROW(page.texts.waiting, texts.waiting, TEXTS, .fallback = "", .max = TL_EVENT_MOMENT_MAX,
        .lines = true, .help = "The same in the line."),
    ROW(page.texts.turn, texts.turn, TEXTS, .fallback = "", .max = TL_EVENT_MOMENT_MAX,
        .lines = true, .help = "The same at the turn."),
    ROW(page.texts.after, texts.after, TEXTS, .fallback = "", .max = TL_EVENT_MOMENT_MAX,
        .lines = true, .help = "The same when the queue is sold out or closed."),
};

_Static_assert(sizeof(page_rows) / sizeof(page_rows[0]) <=
                   sizeof(((struct tl_event_page *)NULL)->places) / sizeof(struct tl_yaml_place),
               "struct tl_event_page has a place for each row");

const struct tl_setting *tl_page_table(size_t *n)
{
    *n = sizeof(page_rows) / sizeof(page_rows[0]);
    return page_rows;
}
