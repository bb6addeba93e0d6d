/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "common/base/origin.h"
#include "common/base/text.h"
#include "common/base/units.h"
#include "common/config/queue_table.h"
#include "common/config/rows.h"

#include "lab/options.h"

enum {
    NUMBER_MOST = 1000000000,
    VISITORS_MOST = 1000000000,
    LIMIT_MOST = 10000000,
    SPEED_MOST = 10000,
    SALES_MOST = 10000
};

static bool refuse(struct tl_error *err, const char *value, const char *why)
{
    char quoted[64];
    tl_quote(value, quoted, sizeof(quoted));
    return tl_error_set(err, TL_ERR_INVALID, "%s %s", quoted, why);
}

static bool apply_calls(void *context, const char *value, struct tl_error *err)
{
    static const struct {
        const char *name;
        int64_t ms;
    } units[] = {{"/session", 0}, {"/s", 1000}, {"/min", 60000}, {"/h", 3600000}};
    struct tl_plan_input *input = context;
    const size_t length = strcspn(value, "/");
    char text[32];
    double number;
    snprintf(text, sizeof(text), "%.*s", (int)length, value);
    if (!tl_decimal_parse(text, &number, NULL) || number <= 0 || number > NUMBER_MOST)
        return refuse(err, value, "must be a number of calls such as 6/session or 6/min");
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (strcmp(value + length, units[i].name) != 0)
            continue;
        input->calls = number;
        input->calls_per_ms = units[i].ms;
        return true;
    }
    return refuse(err, value, "must end with /session, /s, /min or /h, as 6/session or 6/min");
}

/* Scheme, host and port, and nothing behind them. */
static bool apply_target(void *context, const char *value, struct tl_error *err)
{
    struct tl_error problem;
    char quoted[80];
    if (strchr(value, ' ') != NULL || !tl_origins_valid(value, &problem)) {
        tl_quote(value, quoted, sizeof(quoted));
        return tl_error_set(err, TL_ERR_INVALID,
                            "%s is not an address such as http://127.0.0.1:8080", quoted);
    }
    *(const char **)context = value;
    return true;
}

static const char *const crowds[] = {
    [TL_CROWD_EVEN] = "even", [TL_CROWD_RUSH] = "rush", [TL_CROWD_WAVE] = "wave", NULL};

#define OWNER struct tl_plan_options
#define OPTION(name, member, word, kind, ...)                                                      \
    {                                                                                              \
        .value = TL_OPTION_VALUE(name, member, kind, __VA_ARGS__), .argument = word                \
    }
/* What is no setting is read by a function. */
/* NOLINTBEGIN(bugprone-macro-parentheses): they are initializers */
#define OTHER(name, member, word, reader, help_)                                                   \
    {                                                                                              \
        .value = {.path = name, .offset = offsetof(OWNER, member), .help = help_},                 \
        .argument = word, .apply = reader                                                          \
    }
/* NOLINTEND(bugprone-macro-parentheses) */
#define TIMES      .min = SECONDS(1), .max = DAYS(7)
#define MOMENTS    .min = 0, .max = DAYS(7)
#define SHARE_MOST 0.95
/* The bounds of capacity and rate.admit. */
#define LIMITS .min = 1, .max = LIMIT_MOST

static const struct {
    bool crowd; /* also of a rehearsal */
    struct tl_option option;
} table[] = {
    {false, OPTION("tps", input.tps, "N", DECIMAL,
                   "requests per second that the site serves, measured", .max = NUMBER_MOST)},
    {true, OPTION("session", input.session_ms, "TIME", DURATION,
                  "how long a visitor stays on the site, on average", TIMES)},
    {false, OTHER("calls", input, "N/UNIT", apply_calls,
                  "requests of a visitor: 6/session, 6/min, 0.5/s, 300/h")},
    {false,
     OPTION("failure-rate", input.failure_rate, "SHARE", DECIMAL,
            "share of requests that fail and are repeated: 0.15 or 15% (default: 0)", .max = 1)},
    {false, OPTION("safety", input.safety, "SHARE", DECIMAL,
                   "share of throughput to keep in reserve (default: 0.3)", .max = 1)},
    {false, OPTION("margin", input.margin, "SHARE", DECIMAL,
                   "session_ttl is longer than --session by it (default: 0.25)", .max = 10)},
    {true, OPTION("no-shows", input.no_shows, "SHARE", DECIMAL,
                  "share of admitted visitors who never show up (default: 0)", .max = 1)},
    {false, OPTION("policy", input.policy, "NAME", CHOICE, "counter, rate or both (default: both)",
                   .names = tl_policy_names)},
    {false,
     OPTION("period", input.period_ms, "TIME", DURATION, "rate.every: 100ms to 1d (default: 10s)",
            .min = MILLISECONDS(100), .max = DAYS(1))},
    {false,
     OPTION("shape", input.shape, "NAME", CHOICE, "rate.shape: smooth or batches (default: smooth)",
            .names = tl_rate_shape_names)},
    {false, OPTION("burst", input.burst, "N", NUMBER,
                   "rate.burst: how many more after a pause (default: 0)", .max = LIMIT_MOST)},
    {false, OPTION("capacity", input.capacity, "N", NUMBER,
                   "use this capacity instead of the computed one", LIMITS)},
    {false, OPTION("admit", input.admit, "N", NUMBER,
                   "use this rate.admit instead of the computed one", LIMITS)},
    {false, OPTION("claim-ttl", input.claim_ttl_ms, "TIME", DURATION,
                   "use this claim_ttl instead of the suggested one", TIMES)},
    {false, OPTION("waiting-ttl", input.waiting_ttl_ms, "TIME", DURATION,
                   "use this waiting_ttl instead of the suggested one", TIMES)},
    {true, OPTION("visitors", input.crowd.visitors, "N", NUMBER, "how many come", .min = 1,
                  .max = VISITORS_MOST)},
    {true, OPTION("over", input.crowd.over_ms, "TIME", DURATION,
                  "...within this time (default: 10m)", TIMES)},
    {true,
     OPTION("crowd", input.crowd.shape, "NAME", CHOICE,
            "...rush: most at once; even; wave: up and down (default: rush)", .names = crowds)},
    {true, OPTION("peak", input.crowd.peak_ms, "TIME", DURATION,
                  "when a wave is highest (default: in the middle)", MOMENTS)},
    {false, OPTION("sales", input.sales, "N", NUMBER,
                   "how many like this are on at once, for the size (default: 1)", .min = 1,
                   .max = SALES_MOST)},
    {false, OPTION("yaml", yaml, NULL, BOOL, "write only the configuration")},
    {false,
     OPTION("simulate", simulate, NULL, BOOL, "replay the visitors, and draw the line over time")},
    {true,
     OPTION("arrivals", arrivals, "FILE", STRING, "replay arrivals from CSV: arrival[,session]")},
    {false,
     {.value = {.path = "queue",
                .type = TL_SETTING_STRING,
                .offset = offsetof(OWNER, queue),
                .size = sizeof(((OWNER *)NULL)->queue),
                .help = "replay with the settings of this queue of --config"},
      .argument = "NAME",
      .letter = 'q'}},
    {true, OPTION("lanes", lanes, "LIST", STRING,
                  "lanes they come in: vip=10%,club=0.2; the others in the default lane")},
    {true, OPTION("opens-after", opens_after_ms, "TIME", DURATION,
                  "no one is admitted before this time (default: 0s)", MOMENTS)},
    {true, OPTION("patience", patience_ms, "TIME", DURATION,
                  "mean wait after which a visitor gives up (default: never)", TIMES)},
    {true, OPTION("spread", spread, "SHARE", DECIMAL,
                  "deviation of sessions from their mean (default: 0.25)", .max = 10)},
    {true, OPTION("seed", seed, "N", NUMBER, "random seed (default: 1)", .max = INT64_MAX)},
    {false, OPTION("svg", svg, "FILE", STRING, "write the chart to this file, too")},
};

#undef OWNER
#define OWNER struct tl_rehearse_options
static const struct tl_option rehearse_table[] = {
    OTHER("target", target, "URL", apply_target,
          "a worker, or what is in front of it (default: http.listen, here)"),
    OPTION("speed", speed, "N", NUMBER, "how many times faster than the sale (default: 1)",
           .min = 1, .max = SPEED_MOST),
    OPTION("leaving", leaving, "SHARE", DECIMAL,
           "share of those who give up: press leave, and do not just close the page", .max = 1),
};

static size_t fill_rows(struct tl_plan_options *options, struct tl_option *rows, bool only_crowd)
{
    size_t n = 0;
    *options = (struct tl_plan_options){
        .input = {.safety = 0.3,
                  .margin = 0.25,
                  .period_ms = 10000,
                  .policy = TL_POLICY_BOTH,
                  .crowd = {.shape = TL_CROWD_RUSH, .over_ms = 600000, .peak_ms = -1}},
        .spread = 0.25,
        .seed = 1,
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        if (table[i].crowd || !only_crowd) {
            rows[n] = table[i].option;
            rows[n++].base = options;
        }
    }
    return n;
}

size_t tl_plan_options_rows(struct tl_plan_options *options, struct tl_option *rows)
{
    return fill_rows(options, rows, false);
}

size_t tl_crowd_options_rows(struct tl_plan_options *options, struct tl_option *rows)
{
    return fill_rows(options, rows, true);
}

size_t tl_rehearse_options_rows(struct tl_rehearse_options *options, struct tl_option *rows)
{
    enum { N = sizeof(rehearse_table) / sizeof(rehearse_table[0]) };
    *options = (struct tl_rehearse_options){.speed = 1};
    for (size_t i = 0; i < N; i++) {
        rows[i] = rehearse_table[i];
        rows[i].base = options;
    }
    return N;
}

bool tl_crowd_options_check(const struct tl_plan_options *options, bool replays,
                            struct tl_error *err)
{
    const struct tl_crowd *crowd = &options->input.crowd;
    if (replays && options->arrivals == NULL && crowd->visitors == 0)
        return tl_error_set(err, TL_ERR_INVALID, "who comes? --visitors N, or --arrivals FILE");
    if (replays && crowd->visitors > TL_ARRIVALS_MOST)
        return tl_error_set(err, TL_ERR_INVALID, "--visitors: at most %d can be replayed",
                            TL_ARRIVALS_MOST);
    return crowd->peak_ms <= crowd->over_ms ||
           tl_error_set(err, TL_ERR_INVALID, "--peak is later than --over, when all have come");
}

bool tl_plan_options_check(const struct tl_plan_options *options, bool json, struct tl_error *err)
{
    const struct tl_plan_input *input = &options->input;
    const char *alone = options->arrivals != NULL ? "arrivals"
                        : options->queue != NULL  ? "queue"
                        : options->lanes != NULL  ? "lanes"
                        : options->svg != NULL    ? "svg"
                                                  : NULL;
    if (input->safety > SHARE_MOST || input->failure_rate > SHARE_MOST ||
        input->no_shows > SHARE_MOST)
        return tl_error_set(err, TL_ERR_INVALID,
                            "--safety, --failure-rate and --no-shows are at most 95%%");
    if (options->yaml && (json || options->simulate))
        return tl_error_set(err, TL_ERR_INVALID,
                            "--yaml writes only the configuration: leave out -o and "
                            "--simulate");
    if (!options->simulate && alone != NULL)
        return tl_error_set(err, TL_ERR_INVALID, "--%s needs --simulate", alone);
    if (options->lanes != NULL && options->queue == NULL)
        return tl_error_set(err, TL_ERR_INVALID,
                            "--lanes needs --queue, whose lanes they are: the planned queue has "
                            "one lane");
    if (options->arrivals != NULL && input->crowd.visitors > 0)
        return tl_error_set(err, TL_ERR_INVALID, "--arrivals says who comes: leave out --visitors");
    if (input->shape == TL_RATE_BATCHES && input->burst > 0)
        return tl_error_set(
            err, TL_ERR_INVALID,
            "--burst is for --shape smooth: a batch is never larger than rate.admit");
    if (options->queue != NULL && (input->capacity > 0 || input->admit > 0 ||
                                   input->claim_ttl_ms > 0 || input->waiting_ttl_ms > 0))
        return tl_error_set(err, TL_ERR_INVALID,
                            "--queue takes the settings from the configuration: leave out "
                            "--capacity, --admit, --claim-ttl and --waiting-ttl");
    return tl_crowd_options_check(options, options->simulate, err);
}
