/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "common/base/origin.h"
#include "common/base/text.h"
#include "common/base/units.h"

#include "lab/options.h"

#define NUMBER_MOST   1e9
#define VISITORS_MOST UINT64_C(1000000000)
#define LIMIT_MOST    UINT64_C(10000000)
#define DAYS(n)       (INT64_C(n) * 86400000)

enum { SPEED_MOST = 10000 };

/* Reads "12", "12.5" or ".5" and moves *text behind it. */
static bool take_decimal(const char **text, double *value)
{
    size_t whole = strspn(*text, "0123456789");
    size_t used = whole;
    size_t fraction = 0;
    if ((*text)[used] == '.') {
        fraction = strspn(*text + used + 1, "0123456789");
        used += 1 + fraction;
    }
    if (whole + fraction == 0)
        return false;
    *value = strtod(*text, NULL);
    *text += used;
    return true;
}

static bool refuse(struct tl_error *err, const char *value, const char *why)
{
    char quoted[64];
    tl_quote(value, quoted, sizeof(quoted));
    return tl_error_set(err, TL_ERR_INVALID, "%s %s", quoted, why);
}

static bool apply_tps(void *context, const char *value, struct tl_error *err)
{
    const char *at = value;
    double number;
    if (!take_decimal(&at, &number) || *at != '\0')
        return refuse(err, value, "is not a number");
    if (number <= 0 || number > NUMBER_MOST)
        return refuse(err, value, "must be more than 0, and at most 1000000000");
    *(double *)context = number;
    return true;
}

static bool apply_calls(void *context, const char *value, struct tl_error *err)
{
    static const struct {
        const char *name;
        int64_t ms;
    } units[] = {{"/session", 0}, {"/s", 1000}, {"/min", 60000}, {"/h", 3600000}};
    struct tl_plan_input *input = context;
    const char *at = value;
    double number;
    if (!take_decimal(&at, &number) || number <= 0 || number > NUMBER_MOST)
        return refuse(err, value, "must be a number of calls such as 6/session or 6/min");
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (strcmp(at, units[i].name) != 0)
            continue;
        input->calls = number;
        input->calls_per_ms = units[i].ms;
        return true;
    }
    return refuse(err, value, "must end with /session, /s, /min or /h, as 6/session or 6/min");
}

bool tl_plan_ratio(const char *value, double most, double *ratio, struct tl_error *err)
{
    const char *at = value;
    double number;
    bool good = take_decimal(&at, &number);
    bool percent = good && strcmp(at, "%") == 0;
    if (!good || (*at != '\0' && !percent))
        return refuse(err, value, "is not a share such as 0.15 or 15%");
    number /= percent ? 100 : 1;
    if (number > most)
        return tl_error_set(err, TL_ERR_INVALID, "must be 0 to %g", most);
    *ratio = number;
    return true;
}

static bool apply_share(void *context, const char *value, struct tl_error *err)
{
    return tl_plan_ratio(value, 0.95, context, err);
}

static bool apply_ratio(void *context, const char *value, struct tl_error *err)
{
    return tl_plan_ratio(value, 10, context, err);
}

bool tl_option_time(const char *value, int64_t least, int64_t most, int64_t *ms,
                    struct tl_error *err)
{
    char from[TL_UNITS_TEXT_MAX];
    char to[TL_UNITS_TEXT_MAX];
    if (!tl_duration_parse(value, ms, err))
        return false;
    tl_duration_format(least, from, sizeof(from));
    tl_duration_format(most, to, sizeof(to));
    return (*ms >= least && *ms <= most) ||
           tl_error_set(err, TL_ERR_INVALID, "must be from %s to %s", from, to);
}

/* The bounds of rate.every. */
static bool apply_period(void *context, const char *value, struct tl_error *err)
{
    return tl_option_time(value, 100, DAYS(1), context, err);
}

static bool apply_time(void *context, const char *value, struct tl_error *err)
{
    return tl_option_time(value, 1000, DAYS(7), context, err);
}

static bool apply_moment(void *context, const char *value, struct tl_error *err)
{
    return tl_option_time(value, 0, DAYS(7), context, err);
}

static bool apply_visitors(void *context, const char *value, struct tl_error *err)
{
    return tl_option_number(value, VISITORS_MOST, context, err);
}

/* The bounds of capacity and rate.admit. */
static bool apply_limit(void *context, const char *value, struct tl_error *err)
{
    return tl_option_number(value, LIMIT_MOST, context, err);
}

static bool parse_from(const char *value, uint64_t most, uint64_t *number, struct tl_error *err)
{
    if (!tl_number_parse(value, number, err))
        return false;
    return *number <= most ||
           tl_error_set(err, TL_ERR_INVALID, "must be 0 to %llu", (unsigned long long)most);
}

static bool apply_burst(void *context, const char *value, struct tl_error *err)
{
    return parse_from(value, LIMIT_MOST, context, err);
}

static bool apply_seed(void *context, const char *value, struct tl_error *err)
{
    return parse_from(value, UINT64_MAX, context, err);
}

/* The index of the value in the words (ended by NULL), or -1 with a sentence. */
static int word(const char *value, const char *const words[], const char *why, struct tl_error *err)
{
    for (int i = 0; words[i] != NULL; i++) {
        if (strcmp(value, words[i]) == 0)
            return i;
    }
    refuse(err, value, why);
    return -1;
}

static bool apply_policy(void *context, const char *value, struct tl_error *err)
{
    static const char *const words[] = {[TL_POLICY_COUNTER] = "counter",
                                        [TL_POLICY_RATE] = "rate",
                                        [TL_POLICY_BOTH] = "both",
                                        NULL};
    int found = word(value, words, "must be counter, rate or both", err);
    if (found >= 0)
        *(enum tl_policy *)context = (enum tl_policy)found;
    return found >= 0;
}

static bool apply_shape(void *context, const char *value, struct tl_error *err)
{
    static const char *const words[] = {"smooth", "batches", NULL};
    int found = word(value, words, "must be smooth or batches", err);
    if (found >= 0)
        *(bool *)context = found == 1;
    return found >= 0;
}

static bool apply_crowd(void *context, const char *value, struct tl_error *err)
{
    static const char *const words[] = {
        [TL_CROWD_EVEN] = "even", [TL_CROWD_RUSH] = "rush", [TL_CROWD_WAVE] = "wave", NULL};
    int found = word(value, words, "must be even, rush or wave", err);
    if (found >= 0)
        *(enum tl_crowd_shape *)context = (enum tl_crowd_shape)found;
    return found >= 0;
}

/* Scheme, host and port, and nothing behind them. */
static bool apply_server(void *context, const char *value, struct tl_error *err)
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

static bool apply_speed(void *context, const char *value, struct tl_error *err)
{
    return tl_option_number(value, SPEED_MOST, context, err);
}

static bool apply_leaving(void *context, const char *value, struct tl_error *err)
{
    return tl_plan_ratio(value, 1, context, NULL) ||
           tl_error_set(err, TL_ERR_INVALID, "must be a share from 0 to 1, such as 0.5 or 50%%");
}

#define AT(field) offsetof(struct tl_plan_options, field)

static const struct {
    bool crowd; /* also of a rehearsal */
    const char *name, *argument, *help;
    bool (*apply)(void *context, const char *value, struct tl_error *err);
    size_t offset; /* of the context */
} table[] = {
    {false, "tps", "N", "requests per second that the site serves, measured", apply_tps,
     AT(input.tps)},
    {true, "session", "TIME", "how long a visitor stays on the site, on average", apply_time,
     AT(input.session_ms)},
    {false, "calls", "N/UNIT", "requests of a visitor: 6/session, 6/min, 0.5/s, 300/h", apply_calls,
     AT(input)},
    {false, "failure-rate", "SHARE",
     "of requests that fail and are repeated: 0.15 or 15% (default: 0)", apply_share,
     AT(input.failure_rate)},
    {false, "safety", "SHARE", "of the throughput that stays unused (default: 0.3)", apply_share,
     AT(input.safety)},
    {false, "margin", "SHARE", "session_ttl is longer than --session by it (default: 0.25)",
     apply_ratio, AT(input.margin)},
    {true, "no-shows", "SHARE", "of those called who do not come (default: 0)", apply_share,
     AT(input.no_shows)},
    {false, "policy", "NAME", "counter, rate or both (default: both)", apply_policy,
     AT(input.policy)},
    {false, "period", "TIME", "rate.every: 100ms to 1d (default: 10s)", apply_period,
     AT(input.period_ms)},
    {false, "shape", "NAME", "rate.shape: smooth or batches (default: smooth)", apply_shape,
     AT(input.batches)},
    {false, "burst", "N", "rate.burst: so many more after a pause (default: 0)", apply_burst,
     AT(input.burst)},
    {false, "capacity", "N", "use this capacity instead of the computed one", apply_limit,
     AT(input.capacity)},
    {false, "admit", "N", "use this rate.admit instead of the computed one", apply_limit,
     AT(input.admit)},
    {false, "claim-ttl", "TIME", "use this claim_ttl instead of the suggested one", apply_time,
     AT(input.claim_ttl_ms)},
    {false, "waiting-ttl", "TIME", "use this waiting_ttl instead of the suggested one", apply_time,
     AT(input.waiting_ttl_ms)},
    {true, "visitors", "N", "how many come", apply_visitors, AT(input.crowd.visitors)},
    {true, "over", "TIME", "...within this time (default: 10m)", apply_time,
     AT(input.crowd.over_ms)},
    {true, "crowd", "NAME", "...rush: most at once; even; wave: up and down (default: rush)",
     apply_crowd, AT(input.crowd.shape)},
    {true, "peak", "TIME", "when a wave is highest (default: in the middle)", apply_moment,
     AT(input.crowd.peak_ms)},
    {false, "yaml", NULL, "write only the configuration", tl_option_flag, AT(yaml)},
    {false, "simulate", NULL, "replay the visitors, and draw the line over time", tl_option_flag,
     AT(simulate)},
    {true, "arrivals", "FILE", "replay arrivals from CSV: arrival[,session]", tl_option_text,
     AT(arrivals)},
    {false, "queue", "NAME", "replay with the settings of this queue of --config", tl_option_text,
     AT(queue)},
    {true, "lanes", "LIST", "lanes they come in: vip=10%,club=0.2; the others in the default lane",
     tl_option_text, AT(lanes)},
    {true, "opens-after", "TIME", "no one is admitted before this time (default: 0s)", apply_moment,
     AT(opens_after_ms)},
    {true, "patience", "TIME", "mean wait after which a visitor gives up (default: never)",
     apply_time, AT(patience_ms)},
    {true, "spread", "SHARE", "deviation of sessions from their mean (default: 0.25)", apply_ratio,
     AT(spread)},
    {true, "seed", "N", "of the random numbers (default: 1)", apply_seed, AT(seed)},
    {false, "svg", "FILE", "write the chart to this file, too", tl_option_text, AT(svg)},
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
        if (table[i].crowd || !only_crowd)
            rows[n++] = (struct tl_option){.name = table[i].name,
                                           .argument = table[i].argument,
                                           .help = table[i].help,
                                           .apply = table[i].apply,
                                           .context = (char *)options + table[i].offset};
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
    *options = (struct tl_rehearse_options){.speed = 1};
    const struct tl_option all[] = {
        {"server", "URL", "a worker, or what is in front of it (default: http.listen, here)",
         apply_server, &options->server, false, 0},
        {"speed", "N", "so many times faster than the sale (default: 1)", apply_speed,
         &options->speed, false, 0},
        {"leaving", "SHARE", "of those who give up: press leave, and do not just close the page",
         apply_leaving, &options->leaving, false, 0},
        {"remove", NULL, "only remove QUEUE, a scratch queue that an earlier run left",
         tl_option_flag, &options->remove, false, 0},
    };
    memcpy(rows, all, sizeof(all));
    return sizeof(all) / sizeof(all[0]);
}

bool tl_plan_options_check(const struct tl_plan_options *options, bool json, struct tl_error *err)
{
    const struct tl_plan_input *input = &options->input;
    const char *alone = options->arrivals != NULL ? "arrivals"
                        : options->queue != NULL  ? "queue"
                        : options->lanes != NULL  ? "lanes"
                        : options->svg != NULL    ? "svg"
                                                  : NULL;
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
    if (input->batches && input->burst > 0)
        return tl_error_set(
            err, TL_ERR_INVALID,
            "--burst is for --shape smooth: a batch is never larger than rate.admit");
    if (options->simulate && options->arrivals == NULL && input->crowd.visitors == 0)
        return tl_error_set(err, TL_ERR_INVALID,
                            "--simulate needs --visitors N or --arrivals FILE");
    if (options->simulate && input->crowd.visitors > TL_ARRIVALS_MOST)
        return tl_error_set(err, TL_ERR_INVALID, "--simulate replays at most %d visitors",
                            TL_ARRIVALS_MOST);
    if (input->crowd.peak_ms > input->crowd.over_ms)
        return tl_error_set(err, TL_ERR_INVALID, "--peak is later than --over, when all have come");
    if (options->queue != NULL && (input->capacity > 0 || input->admit > 0 ||
                                   input->claim_ttl_ms > 0 || input->waiting_ttl_ms > 0))
        return tl_error_set(err, TL_ERR_INVALID,
                            "--queue takes the settings from the configuration: leave out "
                            "--capacity, --admit, --claim-ttl and --waiting-ttl");
    return true;
}
