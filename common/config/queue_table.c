/* SPDX-License-Identifier: Apache-2.0 */
#include "common/config/queue_table.h"
#include "common/config/checks.h"
#include "common/config/durations.h"

#define TIME_LAST_MS INT64_C(253402300799999) /* the end of the year 9999 */

/* Where a row's field is. */
#define QUEUE(member)                                                                              \
    .offset = offsetof(struct tl_queue_settings, member),                                          \
    .size = sizeof(((struct tl_queue_settings *)NULL)->member)

static const char *const policy_names[] = {"counter", "rate", "both", NULL};
static const char *const capacity_names[] = {"fixed", "auto", NULL};
static const char *const probe_names[] = {"json", "prometheus", NULL};
static const char *const shape_names[] = {"smooth", "lumps", NULL};
static const char *const challenge_names[] = {"none", "work", "external", NULL};
static const char *const join_names[] = {"open", "invited", NULL};
static const char *const sharing_names[] = {"count", "warn", "refuse", NULL};
static const char *const mode_names[] = {"open",     "paused",      "draining", "closed",
                                         "sold_out", "passthrough", NULL};
static const char *const at_close_names[] = {"drain", "stop", NULL};
static const char *const opening_names[] = {"fifo", "draw", NULL};
static const char *const store_error_names[] = {"closed", "open", NULL};

static const struct tl_setting queue_rows[] = {
    {.path = "policy",
     .key = "policy",
     .type = TL_SETTING_CHOICE,
     .fallback = "counter",
     .names = policy_names,
     QUEUE(policy),
     .help =
         "What limits admission: `counter` (the number of active visitors, `capacity`), `rate` (so "
         "many visitors in so much time, `rate`), or `both`. Set `rate` or `both` when all "
         "admitters are of a version that has them."},
    {.path = "capacity",
     .key = "capacity",
     .type = TL_SETTING_NUMBER,
     .fallback = "300",
     .max = 10000000,
     QUEUE(capacity),
     .help = "How many visitors may be active at the same time (policies `counter` and `both`). "
             "Lowering it ends no session. `auto`: it is steered between `capacity_min` and "
             "`capacity_max` by what the protected site reports ([adaptive.md](adaptive.md)). The "
             "store then has the `capacity_max` here. Set `auto` when all programs are of a "
             "version that has it."},
    {.path = "capacity_mode",
     .key = "capacity_mode",
     .type = TL_SETTING_CHOICE,
     .fallback = "fixed",
     .names = capacity_names,
     QUEUE(capacity_mode),
     .help = "`auto`: the capacity is steered between `capacity_min` and `capacity` by what the "
             "protected site reports: the older way to say `capacity: auto`, and how the store "
             "keeps it. `fixed` ends that."},
    {.path = "capacity_min",
     .key = "capacity_min",
     .type = TL_SETTING_NUMBER,
     .fallback = "1",
     .max = 10000000,
     QUEUE(capacity_min),
     .help = "With `capacity: auto`: the least it may become, and where it begins. So many "
             "the site can always take."},
    {.path = "overbook",
     .key = "overbook",
     .type = TL_SETTING_NUMBER,
     .fallback = "0",
     .max = 10000000,
     QUEUE(overbook),
     .help = "So many visitors more than `capacity` may be called, because some never come "
             "([no-shows.md](no-shows.md)); policies `counter` and `both`, and not more than "
             "`capacity`. Set it when all programs are of a version that has it."},
    {.path = "adaptive.load_max",
     .key = "adaptive_load_max",
     .type = TL_SETTING_NUMBER,
     .fallback = "80",
     .min = 1,
     .max = 100,
     QUEUE(adaptive.load_max),
     .help = "With `capacity: auto`: a reported load above it, in per cent, cuts the "
             "capacity. Below nine tenths of all limits it may be raised."},
    {.path = "adaptive.latency_max",
     .key = "adaptive_latency_max",
     .type = TL_SETTING_DURATION,
     .fallback = "0s",
     .min = 0,
     .max = MINUTES(10),
     QUEUE(adaptive.latency_max_ms),
     .help = "The same for a reported latency. `0s`: it is not judged."},
    {.path = "adaptive.errors_max",
     .key = "adaptive_errors_max",
     .type = TL_SETTING_NUMBER,
     .fallback = "5",
     .min = 1,
     .max = 100,
     QUEUE(adaptive.errors_max),
     .help = "The same for a reported share of failed requests, in per cent."},
    {.path = "adaptive.every",
     .key = "adaptive_every",
     .type = TL_SETTING_DURATION,
     .fallback = "5s",
     .min = SECONDS(1),
     .max = MINUTES(60),
     QUEUE(adaptive.every_ms),
     .help = "The capacity is raised once in this time at most."},
    {.path = "adaptive.raise",
     .key = "adaptive_raise",
     .type = TL_SETTING_NUMBER,
     .fallback = "2",
     .min = 1,
     .max = 100,
     QUEUE(adaptive.raise),
     .help = "By how much it is raised: per cent of `capacity`, at least 1 visitor."},
    {.path = "adaptive.cut",
     .key = "adaptive_cut",
     .type = TL_SETTING_NUMBER,
     .fallback = "30",
     .min = 1,
     .max = 90,
     QUEUE(adaptive.cut),
     .help = "By how much it is cut: per cent of those who are active."},
    {.path = "adaptive.hold",
     .key = "adaptive_hold",
     .type = TL_SETTING_DURATION,
     .fallback = "15s",
     .min = SECONDS(1),
     .max = MINUTES(60),
     QUEUE(adaptive.hold_ms),
     .help = "So long after a cut it is neither cut nor raised: sessions have to end first."},
    {.path = "adaptive.fresh",
     .key = "adaptive_fresh",
     .type = TL_SETTING_DURATION,
     .fallback = "15s",
     .min = SECONDS(1),
     .max = MINUTES(60),
     QUEUE(adaptive.fresh_ms),
     .help = "A report counts so long. Without a newer one the capacity falls back to the last "
             "value that was seen to be safe."},
    {.path = "rate.admit",
     .key = "rate_admit",
     .type = TL_SETTING_NUMBER,
     .fallback = "0",
     .max = 10000000,
     QUEUE(rate_admit),
     .help = "Policies `rate` and `both`: so many visitors are admitted... 0: no rate is set, and "
             "these policies are refused."},
    {.path = "rate.every",
     .key = "rate_every",
     .type = TL_SETTING_DURATION,
     .fallback = "10s",
     .min = MILLISECONDS(100),
     .max = DAYS(1),
     QUEUE(rate_every_ms),
     .help = "...in this time: no window of this length holds more."},
    {.path = "rate.shape",
     .key = "rate_shape",
     .type = TL_SETTING_CHOICE,
     .fallback = "smooth",
     .names = shape_names,
     QUEUE(rate_shape),
     .help = "`smooth` spreads them over that time. `lumps` admits them at once, and the next not "
             "before that time has passed; what a lump leaves over lapses."},
    {.path = "rate.burst",
     .key = "rate_burst",
     .type = TL_SETTING_NUMBER,
     .fallback = "0",
     .max = 10000000,
     QUEUE(rate_burst),
     .help =
         "With `smooth`: so many more may be admitted in a window, where admissions did not use "
         "up the rate before."},
    {.path = "session_ttl",
     .key = "session_ttl",
     .type = TL_SETTING_DURATION,
     .fallback = "10m",
     .min = MILLISECONDS(100),
     .max = DAYS(7),
     QUEUE(session_ttl_ms),
     .help = "How long a session lasts."},
    {.path = "session_sliding",
     .key = "session_sliding",
     .type = TL_SETTING_BOOL,
     .fallback = "false",
     QUEUE(session_sliding),
     .help = "`true`: `session_ttl` counts from the site's last `check` or `renew`, at most until "
             "`session_max`."},
    {.path = "session_max",
     .key = "session_max",
     .type = TL_SETTING_DURATION,
     .fallback = "1h",
     .min = MILLISECONDS(100),
     .max = DAYS(7),
     QUEUE(session_max_ms),
     .help = "The longest a sliding session may last; at least `session_ttl`."},
    {.path = "claim_ttl",
     .key = "claim_ttl",
     .type = TL_SETTING_DURATION,
     .fallback = "2m",
     .min = MILLISECONDS(100),
     .max = DAYS(7),
     QUEUE(claim_ttl_ms),
     .help = "How long an admitted visitor who makes no request keeps the slot."},
    {.path = "waiting_ttl",
     .key = "waiting_ttl",
     .type = TL_SETTING_DURATION,
     .fallback = "10m",
     .min = SECONDS(1),
     .max = DAYS(7),
     QUEUE(waiting_ttl_ms),
     .help = "A waiting visitor not seen for this long loses the place."},
    {.path = "recovery_window",
     .key = "recovery_window",
     .type = TL_SETTING_DURATION,
     .fallback = "1m",
     .min = 0,
     .max = DAYS(1),
     QUEUE(recovery_window_ms),
     .help =
         "After Redis lost the data of the queue: how long no one is admitted, so that visitors "
         "come back with their tickets and stand as before. `0s`: the queue begins empty."},
    {.path = "lanes",
     .key = "lanes",
     .type = TL_SETTING_LANES,
     .fallback = "vip,normal",
     .min = 1,
     .max = TL_LANES_MAX,
     QUEUE(lanes),
     .help = "The lanes of the line; without `lane_weights` a lane is served only while those "
             "before it "
             "are empty."},
    {.path = "default_lane",
     .key = "default_lane",
     .type = TL_SETTING_LANE,
     .fallback = "normal",
     QUEUE(default_lane),
     .help = "The lane of visitors for whom none was named. When `lanes` is given without it: the "
             "last lane."},
    {.path = "lane_weights",
     .key = "lane_weights",
     .type = TL_SETTING_WEIGHTS,
     .fallback = "",
     QUEUE(lane_weights),
     .help = "Shares of the lanes, one number for each in their order: with `[3, 1]` three "
             "visitors of the first lane are admitted for one of the second, while both have "
             "visitors. Empty: a lane is served only while those before it are empty. Set it when "
             "all workers and admitters are of a version that has it."},
    {.path = "opens_at",
     .key = "opens_at",
     .type = TL_SETTING_TIME,
     .fallback = "",
     .max = TIME_LAST_MS,
     QUEUE(opens_at_ms),
     .help = "No one is admitted before this time. Empty: open at once."},
    {.path = "closes_at",
     .key = "closes_at",
     .type = TL_SETTING_TIME,
     .fallback = "",
     .max = TIME_LAST_MS,
     QUEUE(closes_at_ms),
     .help = "From this time on no one joins any more. Empty: no such time. Set it when all "
             "dispatchers are of a version that has it."},
    {.path = "at_close",
     .key = "at_close",
     .type = TL_SETTING_CHOICE,
     .fallback = "drain",
     .names = at_close_names,
     QUEUE(at_close),
     .help = "What becomes of the line at `closes_at`: `drain` serves it to its end, `stop` admits "
             "no one any more. Set `stop` when all admitters are of a version that has it."},
    {.path = "opening",
     .key = "opening",
     .type = TL_SETTING_CHOICE,
     .fallback = "fifo",
     .names = opening_names,
     QUEUE(opening),
     .help =
         "In which order those stand who joined before `opens_at`: `fifo` (as they came), or "
         "`draw` (drawn by lot at the opening). Who comes after it stands behind. Set `draw` when "
         "all programs are of a version that has it."},
    {.path = "join",
     .key = "join",
     .type = TL_SETTING_CHOICE,
     .fallback = "open",
     .names = join_names,
     QUEUE(join),
     .help =
         "Who may join: `open` (everyone), or `invited` (with an invite, or by a trusted caller)."},
    {.path = "max_waiting",
     .key = "max_waiting",
     .type = TL_SETTING_NUMBER,
     .fallback = "0",
     .max = 1000000000,
     QUEUE(max_waiting),
     .help =
         "How many visitors may wait at most; a join beyond it is answered with 503 `full`, and "
         "the page tries again by itself. 0: any number. Set it when all workers are of a "
         "version that has it."},
    {.path = "full_margin",
     .key = "full_margin",
     .type = TL_SETTING_NUMBER,
     .fallback = "5",
     .max = 50,
     QUEUE(full_margin),
     .help = "When the line was full: joins are taken again once this many percent of "
             "`max_waiting` (rounded up) are free..."},
    {.path = "full_cooldown",
     .key = "full_cooldown",
     .type = TL_SETTING_DURATION,
     .fallback = "10s",
     .max = DAYS(1),
     QUEUE(full_cooldown_ms),
     .help = "...and this long after it became full. So the queue does not open and close with "
             "each visitor who leaves."},
    {.path = "challenge",
     .key = "challenge",
     .type = TL_SETTING_CHOICE,
     .fallback = "none",
     .names = challenge_names,
     QUEUE(challenge),
     .help =
         "What a join without an invite or API key must bring: `none`, `work` (proof of work: the "
         "waiting page solves a puzzle, about half a second on an old phone and up to 16 times "
         "as long while many join), or `external` (a token of the provider in "
         "`challenge_service`, which every worker must know). Set `external` when all programs "
         "are of a version that has it."},
    {.path = "on_store_error",
     .key = "on_store_error",
     .type = TL_SETTING_CHOICE,
     .fallback = "closed",
     .names = store_error_names,
     QUEUE(on_store_error),
     .help = "What `check` answers while Redis cannot be reached, about visitors the worker does "
             "not know: `closed` refuses them, `open` lets them through."},
    {.path = "shared_sessions",
     .key = "shared_sessions",
     .type = TL_SETTING_CHOICE,
     .fallback = "count",
     .names = sharing_names,
     QUEUE(shared_sessions),
     .help =
         "What `check` does when several clients use one session in turn: `count` it, `warn` in "
         "the log too, or also `refuse` the clients that came later."},
    {.path = "mode",
     .key = "mode",
     .type = TL_SETTING_CHOICE,
     .fallback = "open",
     .names = mode_names,
     QUEUE(mode),
     .help = "What you want of the queue: `open`, `paused` (visitors join, no one is admitted), "
             "`draining` (no one joins, the line is served), `closed` or `sold_out` (neither), or "
             "`passthrough` (everyone gets in past the line). `passthrough` in the file counts in "
             "any case, and is read again on SIGHUP; all other changes are made with `tellerline "
             "open QUEUE`, `pause`, `drain`, `close`, `sold-out` and `passthrough`."},
    {.path = "paused",
     .key = "paused",
     .type = TL_SETTING_BOOL,
     .fallback = "false",
     QUEUE(paused),
     .help = "The way of older versions to say `mode: paused`, which is still understood. In the "
             "store it is `true` in every mode that admits no one, so that older programs admit "
             "no one either."},
    {.path = "closed_text_en",
     .key = "closed_text_en",
     .type = TL_SETTING_STRING,
     .fallback = "",
     QUEUE(closed_text_en),
     .help = "What the page says, in English, while the queue is closed, draining or over. Empty: "
             "a built-in sentence."},
    {.path = "closed_text_ko",
     .key = "closed_text_ko",
     .type = TL_SETTING_STRING,
     .fallback = "",
     QUEUE(closed_text_ko),
     .help = "The same in Korean."},
    {.path = "sold_out_text_en",
     .key = "sold_out_text_en",
     .type = TL_SETTING_STRING,
     .fallback = "",
     QUEUE(sold_out_text_en),
     .help = "What the page says, in English, while it is sold out. Empty: a built-in sentence."},
    {.path = "sold_out_text_ko",
     .key = "sold_out_text_ko",
     .type = TL_SETTING_STRING,
     .fallback = "",
     QUEUE(sold_out_text_ko),
     .help = "The same in Korean."},
    {.path = "target_url",
     .key = "target_url",
     .type = TL_SETTING_STRING,
     .fallback = "",
     .check = tl_check_url,
     QUEUE(target_url),
     .help = "Where an admitted visitor continues, `http://` or `https://`. Empty: the answers "
             "have no address."},
};

_Static_assert(sizeof(queue_rows) / sizeof(queue_rows[0]) <= TL_QUEUE_ROWS_MAX,
               "struct tl_queue_config has a flag for each row");

const struct tl_setting *tl_queue_table(size_t *n)
{
    *n = sizeof(queue_rows) / sizeof(queue_rows[0]);
    return queue_rows;
}

#define PROBE(member)                                                                              \
    .offset = offsetof(struct tl_probe_config, member),                                            \
    .size = sizeof(((struct tl_probe_config *)NULL)->member)

static const struct tl_setting probe_rows[] = {
    {.path = "probe.url",
     .type = TL_SETTING_STRING,
     .fallback = "",
     .check = tl_check_url,
     PROBE(url),
     .help = "With `capacity: auto`: where the admitter asks how loaded the site is, `http://` "
             "or `https://`. Empty: there is no probe; the site reports by itself."},
    {.path = "probe.format",
     .type = TL_SETTING_CHOICE,
     .fallback = "json",
     .names = probe_names,
     PROBE(format),
     .help = "How the answer is read: `json`, or `prometheus` (the text format of `/metrics`)."},
    {.path = "probe.value",
     .type = TL_SETTING_STRING,
     .fallback = "",
     PROBE(value),
     .help = "What is read of it. `json`: the path to a number, such as `workers.busy` or "
             "`pools.0.used`. `prometheus`: a metric, whose series are added up, or one series "
             "with its labels, as the page writes it."},
    {.path = "probe.full",
     .type = TL_SETTING_STRING,
     .fallback = "1",
     .min = 1,
     .check = tl_check_decimal,
     PROBE(full),
     .help = "The value that is a load of 100 %: `1`, `0.9`, `200`."},
    {.path = "probe.every",
     .type = TL_SETTING_DURATION,
     .fallback = "2s",
     .min = MILLISECONDS(100),
     .max = MINUTES(60),
     PROBE(every_ms),
     .help = "How often it is asked."},
    {.path = "probe.timeout",
     .type = TL_SETTING_DURATION,
     .fallback = "1s",
     .min = MILLISECONDS(10),
     .max = SECONDS(30),
     PROBE(timeout_ms),
     .help = "How long the answer may take."},
};

const struct tl_setting *tl_probe_table(size_t *n)
{
    *n = sizeof(probe_rows) / sizeof(probe_rows[0]);
    return probe_rows;
}
