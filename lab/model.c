/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "lab/model.h"

/* Bounds of the settings (common/config/program_table.c). */
#define SESSION_TTL_MOST_MS (INT64_C(7) * 86400000)
#define LIMIT_MOST          10000000

enum {
    SECOND_MS = 1000,
    MINUTE_MS = 60000,
    CLAIM_USUAL_MS = 2 * MINUTE_MS,
    CLAIM_LEAST_MS = MINUTE_MS,
    CLAIM_MOST_MS = 5 * MINUTE_MS,
    WAITING_LEAST_MS = 10 * MINUTE_MS,
    WAITING_MOST_MS = 60 * MINUTE_MS,
    PROCESSES_LEAST = 2,
};

static int64_t round_up(double ms, int64_t unit_ms)
{
    return (int64_t)ceil(ms / (double)unit_ms - 1e-9) * unit_ms;
}

static int64_t clamp(int64_t value, int64_t least, int64_t most)
{
    return value < least ? least : value > most ? most : value;
}

/* Down to two significant digits. The tiny share forgives binary fractions: 1000 * (1 - 0.9) is
 * 99.99999999999997. */
static uint64_t round_down(double value)
{
    uint64_t number = (uint64_t)floor(value * (1 + 1e-12));
    uint64_t unit = 1;
    while (number / unit >= 100)
        unit *= 10;
    return number - number % unit;
}

/* How long the last of the crowd waits at this throughput; 0 when the crowd is not known. */
static double longest_wait_ms(const struct tl_plan_input *input, double per_second)
{
    return per_second > 0 ? (double)input->crowd.visitors / per_second * SECOND_MS : 0;
}

/* Rules of thumb, not measurements: who waits longer looks away for longer, and needs longer to
 * come back when called. But a no-show must not cost more than half a session. */
static void choose_times(const struct tl_plan_input *input, struct tl_plan *plan)
{
    double wait_ms = longest_wait_ms(input, plan->admitted);
    int64_t claim_ms = clamp(round_up(wait_ms / 10, MINUTE_MS / 2), CLAIM_LEAST_MS, CLAIM_MOST_MS);
    if (wait_ms <= 0)
        claim_ms = CLAIM_USUAL_MS;
    int64_t half_ms = plan->settings.session_ttl_ms / 2 / SECOND_MS * SECOND_MS;
    claim_ms = clamp(claim_ms, SECOND_MS, half_ms > SECOND_MS ? half_ms : SECOND_MS);
    plan->settings.claim_ttl_ms = input->claim_ttl_ms > 0 ? input->claim_ttl_ms : claim_ms;
    plan->settings.waiting_ttl_ms =
        input->waiting_ttl_ms > 0 ? input->waiting_ttl_ms
                                  : clamp(round_up(fmin(wait_ms / 4, WAITING_MOST_MS), MINUTE_MS),
                                          WAITING_LEAST_MS, WAITING_MOST_MS);
}

static void admitted_by(const struct tl_plan_input *input, struct tl_plan *plan)
{
    plan->hold_ms = (1 - input->no_shows) * (double)input->session_ms +
                    input->no_shows * (double)plan->settings.claim_ttl_ms;
    plan->by_rate = input->policy == TL_POLICY_COUNTER
                        ? 0
                        : (double)plan->settings.rate.admit / (double)input->period_ms * SECOND_MS;
    plan->by_capacity = input->policy == TL_POLICY_RATE
                            ? 0
                            : (double)plan->settings.capacity / plan->hold_ms * SECOND_MS;
    plan->admitted = input->policy == TL_POLICY_COUNTER ? plan->by_capacity
                     : input->policy == TL_POLICY_RATE  ? plan->by_rate
                                                        : fmin(plan->by_rate, plan->by_capacity);
    plan->admitted_least = plan->admitted;
    if (input->policy != TL_POLICY_RATE)
        plan->admitted_least =
            fmin(plan->admitted, (double)plan->settings.capacity /
                                     (double)plan->settings.session_ttl_ms * SECOND_MS);
}

/* How much busier than its average the busiest moment of a crowd is. */
static double peak_factor(enum tl_crowd_shape shape)
{
    switch (shape) {
    case TL_CROWD_EVEN:
        return 1;
    case TL_CROWD_WAVE:
        return 2;
    case TL_CROWD_RUSH:
        break;
    }
    return 4 / (1 - exp(-4)); /* the density of crowd.c at 0 */
}

/* A Redis that is busier than that answers late. */
static const double REDIS_BUSY_MOST = 0.5;
/* In a cluster of two masters neither can be replaced: most of them must agree to that. */
static const double CLUSTER_LEAST = 3;

static void size_installation(const struct tl_plan_input *input, struct tl_plan *plan)
{
    const struct tl_crowd *crowd = &input->crowd;
    if (crowd->visitors == 0)
        return;
    uint64_t sales = input->sales > 0 ? input->sales : 1;
    double joins =
        (double)crowd->visitors / ((double)crowd->over_ms / SECOND_MS) * peak_factor(crowd->shape);
    plan->peak_joins = (double)sales * joins;
    /* Half of what was measured: a worker also answers polls, pages and checks. */
    double for_joins = ceil(plan->peak_joins / (TL_PLAN_JOINS_PER_PROCESS / 2.0));
    double for_pages = ceil((double)sales * (double)crowd->visitors / TL_PLAN_PAGES_PER_PROCESS);
    plan->processes = (uint64_t)fmax(PROCESSES_LEAST, fmax(for_joins, for_pages));
    plan->redis_bytes = 2 * TL_PLAN_REDIS_BYTES * sales * crowd->visitors;
    plan->redis_share = joins / TL_PLAN_JOINS_PER_MASTER + plan->admitted * TL_PLAN_REDIS_US / 1e6;
    double masters = ceil((double)sales * plan->redis_share / REDIS_BUSY_MOST);
    masters = fmin(masters, (double)sales);
    plan->redis_masters = masters > 1 ? (uint64_t)fmax(masters, CLUSTER_LEAST) : 1;
}

static bool missing(struct tl_error *err, const char *option, const char *example)
{
    return tl_error_set(err, TL_ERR_INVALID, "--%s is missing, for example --%s %s", option, option,
                        example);
}

/* The options that nothing can be computed without. */
static bool check_input(const struct tl_plan_input *input, struct tl_error *err)
{
    if (input->tps <= 0)
        return missing(err, "tps", "1000");
    if (input->session_ms <= 0)
        return missing(err, "session", "5m");
    if (input->calls <= 0)
        return missing(err, "calls", "6/session");
    if ((double)input->session_ms * (1 + input->margin) > SESSION_TTL_MOST_MS)
        return tl_error_set(err, TL_ERR_INVALID,
                            "--session with --margin is longer than 7d, the longest session_ttl");
    return true;
}

/* The limits must be numbers that the settings take. */
static bool check_limits(const struct tl_plan_input *input, const struct tl_plan *plan,
                         struct tl_error *err)
{
    bool rate = input->policy != TL_POLICY_COUNTER;
    bool counter = input->policy != TL_POLICY_RATE;
    if (rate && plan->settings.rate.admit == 0) {
        double seconds = ceil(1 / (plan->per_second * (1 - input->safety)));
        return tl_error_set(err, TL_ERR_INVALID,
                            "less than one visitor per --period fits; the shortest period for one "
                            "is %.0fs",
                            seconds);
    }
    if (counter && plan->settings.capacity == 0)
        return tl_error_set(err, TL_ERR_INVALID,
                            "not even one visitor at once fits: %.2f sessions use all of --tps, "
                            "before --safety",
                            plan->at_once);
    if (counter && plan->settings.capacity > LIMIT_MOST)
        return tl_error_set(err, TL_ERR_INVALID,
                            "a capacity of %" PRIu64 " is above the largest setting, %d; "
                            "check --tps and --calls",
                            plan->settings.capacity, LIMIT_MOST);
    if (rate && plan->settings.rate.admit > LIMIT_MOST)
        return tl_error_set(err, TL_ERR_INVALID,
                            "%" PRIu64 " visitors per period is above the largest setting, %d; "
                            "take a shorter --period",
                            plan->settings.rate.admit, LIMIT_MOST);
    return true;
}

bool tl_plan_compute(const struct tl_plan_input *input, struct tl_plan *plan, struct tl_error *err)
{
    *plan = (struct tl_plan){0};
    if (!check_input(input, err))
        return false;
    plan->calls = input->calls_per_ms == 0
                      ? input->calls
                      : input->calls * (double)input->session_ms / (double)input->calls_per_ms;
    plan->calls_used = plan->calls * (1 + input->failure_rate);
    plan->settings = (struct tl_queue_settings){
        .policy = input->policy,
        .rate = {.every_ms = input->period_ms, .burst = input->burst, .shape = input->shape},
        .n_lanes = 1};
    plan->settings.session_ttl_ms =
        round_up((double)input->session_ms * (1 + input->margin), SECOND_MS);
    plan->per_second = input->tps / plan->calls_used;
    plan->per_period = input->tps * ((double)input->period_ms / SECOND_MS) / plan->calls_used;
    plan->at_once = input->tps * ((double)input->session_ms / SECOND_MS) / plan->calls_used;
    plan->at_once_most =
        input->tps * ((double)plan->settings.session_ttl_ms / SECOND_MS) / plan->calls_used;
    plan->safe_admit = round_down(plan->per_period * (1 - input->safety));
    plan->safe_capacity = round_down(plan->at_once * (1 - input->safety));
    plan->settings.rate.admit = input->admit > 0 ? input->admit : plan->safe_admit;
    plan->settings.capacity = input->capacity > 0 ? input->capacity : plan->safe_capacity;
    if (!check_limits(input, plan, err))
        return false;
    /* The claim time depends on the wait, and the wait on the slots that no-shows take: the time
     * is chosen by the wait without no-shows. */
    plan->settings.claim_ttl_ms = input->session_ms;
    admitted_by(input, plan);
    choose_times(input, plan);
    admitted_by(input, plan);
    size_installation(input, plan);
    return true;
}

int64_t tl_plan_wait_ms(uint64_t ahead, double per_second)
{
    return (int64_t)fmin((double)ahead / per_second * SECOND_MS, (double)INT64_MAX / 2);
}

/* A whole batch of visitors makes its first request in the same moment. */
static void warn_of_lump(const struct tl_plan_input *input, struct tl_sentences *warnings,
                         uint64_t visitors, const char *when, const char *instead)
{
    if ((double)visitors <= input->tps)
        return;
    tl_say(warnings,
           "%s, %s visitors come at once: their first requests alone take %s s of the site's %s "
           "requests per second. %s",
           when, tl_words_whole(visitors).text,
           tl_words_number((double)visitors / input->tps, 1).text,
           tl_words_number(input->tps, 1).text, instead);
}

static void warn_of_limits(const struct tl_plan_input *input, const struct tl_plan *plan,
                           struct tl_sentences *warnings)
{
    bool rate = input->policy != TL_POLICY_COUNTER;
    bool counter = input->policy != TL_POLICY_RATE;
    if (rate && (double)plan->settings.rate.admit > plan->per_period)
        tl_say(warnings, "--admit %s is above what the site serves: %s per period.",
               tl_words_whole(plan->settings.rate.admit).text,
               tl_words_number(floor(plan->per_period), 0).text);
    if (counter && (double)plan->settings.capacity > plan->at_once)
        tl_say(warnings, "--capacity %s is above what the site serves: %s at once.",
               tl_words_whole(plan->settings.capacity).text,
               tl_words_number(floor(plan->at_once), 0).text);
    if (rate && input->admit == 0 &&
        (double)plan->settings.rate.admit < 0.9 * plan->per_period * (1 - input->safety))
        tl_say(warnings,
               "Rounding down takes more than a tenth of the admissions; a longer --period "
               "takes less.");
    if (rate && input->shape == TL_RATE_BATCHES)
        warn_of_lump(input, warnings, plan->settings.rate.admit, "With --shape batches",
                     "Use smooth, or a shorter --period.");
    if (rate && input->shape == TL_RATE_SMOOTH && input->burst > 0)
        warn_of_lump(input, warnings, input->burst + 1, "After a pause", "Use a smaller --burst.");
    if (!rate)
        warn_of_lump(input, warnings, plan->settings.capacity,
                     "With policy counter, when the queue opens",
                     "Policy both lets them in at the rate.");
    if (!counter)
        tl_say(warnings, "Policy rate does not limit how many are on the site: when sessions take "
                         "longer than planned, they pile up. Policy both limits that, too.");
}

void tl_plan_warn(const struct tl_plan_input *input, const struct tl_plan *plan,
                  struct tl_sentences *warnings)
{
    warnings->n = 0;
    if (input->safety < 0.1)
        tl_say(warnings, "With a --safety below 0.1 the site has no room for other visitors, slow "
                         "moments or wrong figures.");
    if (input->failure_rate >= 0.3)
        tl_say(warnings,
               "With %s of failures, repeats fail, too. Visitors who repeat until it works use %s "
               "requests per session. Find out first why requests fail.",
               tl_words_share(input->failure_rate).text,
               tl_words_number(plan->calls / (1 - input->failure_rate), 2).text);
    if (plan->calls < 1)
        tl_say(warnings, "Less than one request per session: is --calls right?");
    warn_of_limits(input, plan, warnings);
    if (input->no_shows > 0 && plan->settings.claim_ttl_ms >= input->session_ms)
        tl_say(warnings, "claim_ttl is not shorter than a session: someone who does not come costs "
                         "as much as a visit.");
    if (plan->settings.claim_ttl_ms > plan->settings.session_ttl_ms)
        tl_say(warnings, "--claim-ttl is longer than session_ttl.");
    if (plan->redis_share > REDIS_BUSY_MOST)
        tl_say(warnings,
               "A sale is in one Redis, and this one takes %s of its core when most come. Divide "
               "it, or measure yours first.",
               tl_words_share(plan->redis_share).text);
    double wait_ms = longest_wait_ms(input, plan->admitted);
    if (wait_ms > 4.0 * 3600 * SECOND_MS)
        tl_say(warnings,
               "The last visitor would wait %s. Few will: tell them early, or limit the line with "
               "max_waiting.",
               tl_words_time((int64_t)fmin(wait_ms, 1e15)).text);
}
