#include <math.h>

#include "worker/queue/eta.h"

static const double half_life_ms = 120e3;
static const double admitted_min = 5; /* fewer are too few to estimate from */
static const double stalled_ms = 10e3;
static const double z =
    1.2815515655; /* of the normal distribution: one in ten lies beyond it on either side */

/* Lets time pass up to now_ms. */
static void pass(struct tl_eta *eta, int64_t now_ms)
{
    double elapsed = (double)(now_ms - eta->now_ms);
    eta->now_ms = now_ms;
    if (!eta->waiting || elapsed <= 0)
        return;
    eta->quiet_ms += (int64_t)elapsed;
    double kept = exp2(-elapsed / half_life_ms);
    /* The time that passes fades while it passes: the integral of 2^(-s / half-life) over it. */
    eta->time_ms = eta->time_ms * kept + (1 - kept) * half_life_ms / M_LN2;
    eta->admitted *= kept;
}

void tl_eta_step(struct tl_eta *eta, int64_t now_ms, const struct tl_eta_step *step)
{
    pass(eta, now_ms);
    if (!eta->waiting) /* the line has just formed: start from the sessions that were active before
                        */
        eta->level = step->active > step->admitted ? step->active - step->admitted : 0;
    uint64_t filling = step->active > eta->level ? step->active - eta->level : 0;
    if (filling > step->admitted)
        filling = step->admitted;
    if (step->active > eta->level)
        eta->level = step->active;
    eta->admitted += (double)(step->admitted - filling);
    eta->waiting = step->waiting > 0;
    if (step->admitted > 0 || !eta->waiting)
        eta->quiet_ms = 0;
}

void tl_eta_limit(struct tl_eta *eta, uint64_t capacity)
{
    if (eta->level > capacity)
        eta->level = capacity;
}

void tl_eta_stop(struct tl_eta *eta, int64_t now_ms)
{
    pass(eta, now_ms);
    eta->waiting = false;
}

/* The quantile of F(2k, 2n) at deviation `d` of the normal distribution: the root of a quadratic in
 * its cube root. */
static double f_quantile(double k, double n, double d)
{
    double spread_k = 1 / (9 * k);
    double spread_n = 1 / (9 * n);
    double a = 1 - spread_n;
    double b = 1 - spread_k;
    double root = sqrt(a * a * spread_k + b * b * spread_n - d * d * spread_k * spread_n);
    double x = (a * b + d * root) / (a * a - d * d * spread_n);
    return x > 0 ? x * x * x : 0;
}

/* How many observations the admissions seen amount to. When the line formed, all capacity was taken
 * at once, so those sessions also end close together. Until we have seen as many admissions as
 * there is capacity, they weigh less than their number. */
static double weight(const struct tl_eta *eta)
{
    double n = eta->admitted;
    if (n < (double)eta->level)
        n = n * n / (double)eta->level;
    return n > admitted_min ? n : admitted_min;
}

/* What the admissions seen say. */
static bool observed(const struct tl_eta *eta, double position, struct tl_eta_range *range)
{
    if (eta->admitted < admitted_min || eta->time_ms <= 0)
        return false;
    range->mean_s = position * eta->time_ms / eta->admitted / 1000;
    range->low_s = range->mean_s * f_quantile(position, weight(eta), -z);
    range->high_s = range->mean_s * f_quantile(position, weight(eta), z);
    return true;
}

/* What the rate says. It is kept exactly, except that a delay of the admitter costs its length once
 * in a period (common/store/prelude.budget.lua). */
static struct tl_eta_range by_rule(const struct tl_eta_rule *rule, double position)
{
    double every_s = (double)rule->every_ms / 1000;
    double most_s = ceil(position / (double)rule->admit) * every_s;
    if (rule->lumps) /* the next one at any time within the period */
        return (struct tl_eta_range){
            .low_s = most_s - every_s, .mean_s = most_s - every_s / 2, .high_s = most_s};
    double one_s = every_s / (double)rule->admit;
    double mean_s = position * one_s;
    return (struct tl_eta_range){.low_s = fmax(0, mean_s - ((double)rule->burst + 1) * one_s),
                                 .mean_s = mean_s,
                                 .high_s = fmin(most_s, mean_s * 1.05 + one_s + 1)};
}

/* Is no visitor admitted although the rate demands it? */
static bool is_stalled(const struct tl_eta *eta, const struct tl_eta_rule *rule)
{
    double gap_ms = (double)rule->every_ms / (rule->lumps ? 1 : (double)rule->admit);
    return (double)eta->quiet_ms > 2 * gap_ms + stalled_ms;
}

bool tl_eta_estimate(const struct tl_eta *eta, const struct tl_eta_rule *rule, int64_t now_ms,
                     uint64_t position, struct tl_eta_range *range)
{
    struct tl_eta now = *eta;
    pass(&now, now_ms);
    bool known = observed(&now, (double)position, range);
    if (rule->admit == 0)
        return known;
    struct tl_eta_range best = by_rule(rule, (double)position);
    if (rule->alone && !is_stalled(&now, rule)) {
        *range = best;
        return true;
    }
    range->low_s = fmax(range->low_s, best.low_s);
    range->mean_s = fmax(range->mean_s, best.mean_s);
    range->high_s = fmax(range->high_s, best.high_s);
    return known;
}
