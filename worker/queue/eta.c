#include <math.h>

#include "worker/queue/eta.h"

static const double half_life_ms = 120e3;
static const double admitted_min = 5; /* fewer are too few to estimate from */
static const double z =
    1.2815515655; /* of the normal distribution: one in ten lies beyond it on either side */

/* Lets time pass up to now_ms. */
static void pass(struct tl_eta *eta, int64_t now_ms)
{
    double elapsed = (double)(now_ms - eta->now_ms);
    eta->now_ms = now_ms;
    if (!eta->waiting || elapsed <= 0)
        return;
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

bool tl_eta_estimate(const struct tl_eta *eta, int64_t now_ms, uint64_t position,
                     struct tl_eta_range *range)
{
    struct tl_eta now = *eta;
    pass(&now, now_ms);
    if (now.admitted < admitted_min || now.time_ms <= 0)
        return false;
    double k = (double)position;
    range->mean_s = k * now.time_ms / now.admitted / 1000;
    range->low_s = range->mean_s * f_quantile(k, weight(&now), -z);
    range->high_s = range->mean_s * f_quantile(k, weight(&now), z);
    return true;
}
