/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "worker/queue/eta.h"

enum { STEPS = TL_LIFETIME_BINS, GROUPS = 8, TURNS = 3, EXACT = 16 };

/* Beyond chance and few observations, sessions change over the day: relative standard deviation of
 * the mean session that is to be expected. */
static const double drift = 0.02;
/* Rare long sessions skew the sum of a few more than that of many, beyond what its variance says.
 * Fitted to the sessions of a bank. */
static const double skew = 0.75, skewed_up_to = 60;
static const double dispersion_min = 0.02;
static const double exponent_max = 40; /* of the visitors who leave */

/* ---- the renewal equations ---- */

/* Moments of the number of ends of one counter. Index i: up to the end of step i. */
struct moments {
    double mean[STEPS + 1], square[STEPS + 1];
};

/* A counter whose next end falls into step j with probability first[j], and goes on like `after`,
 * which starts with a new session. Within a step, ends are spread evenly. NULL: goes on like
 * itself, as it starts with a new session now: what happens within one step follows from the last
 * step only.
 */
static void renew(const double first[STEPS + 1], const struct moments *after, struct moments *out)
{
    const struct moments *next = after != NULL ? after : out;
    const double itself = after != NULL ? 0 : first[1]; /* the value that the equation holds */
    memset(out, 0, sizeof(*out));
    for (int i = 0; i <= STEPS; i++) {
        double mean = 0, square = 0;
        for (int j = 1; j <= i; j++) {
            double m = (next->mean[i - j] + next->mean[i - j + 1]) / 2;
            double s = (next->square[i - j] + next->square[i - j + 1]) / 2;
            mean += first[j] * (1 + m);
            square += first[j] * (1 + 2 * m + s);
        }
        /* The half that was left out, being 0 until here. */
        out->mean[i] = mean / (1 - itself / 2);
        out->square[i] = (square + itself * out->mean[i]) / (1 - itself / 2);
    }
}

/* ---- the sessions that run now, by age ---- */

struct group {
    double weight;
    double first[STEPS + 1]; /* ends in step j with this probability */
};

/* Chance that a session of age a (in steps) ends in the j-th step from now. */
static double end_in(const struct tl_lifetimes *lifetimes, int a, int j)
{
    const double *survival = lifetimes->survival;
    return survival[a] > 0 ? (survival[a + j - 1] - survival[a + j]) / survival[a] : 0;
}

/* Groups of about equally many sessions of similar age. Returns how many groups. */
static int group_by_age(const struct tl_lifetimes *lifetimes, struct group groups[GROUPS + 1])
{
    int n = 0;
    memset(groups, 0, (GROUPS + 1) * sizeof(*groups));
    double known = 1 - lifetimes->unknown;
    for (int a = 0; a <= STEPS && known > 0; a++) {
        double share = lifetimes->ages[a];
        if (share <= 0)
            continue;
        if (n < GROUPS - 1 && groups[n].weight >= known / GROUPS)
            n++;
        groups[n].weight += share;
        for (int j = 1; j <= STEPS; j++)
            groups[n].first[j] += share * end_in(lifetimes, a, j);
    }
    n = groups[n].weight > 0 ? n + 1 : n;
    if (lifetimes->unknown >
        0) { /* as old as sessions are at a moment that means nothing to them */
        double mean = lifetimes->mean_ms / lifetimes->step_ms;
        groups[n].weight = lifetimes->unknown;
        for (int j = 1; j <= STEPS; j++)
            groups[n].first[j] = lifetimes->unknown *
                                 (lifetimes->survival[j - 1] + lifetimes->survival[j]) / 2 / mean;
        n++;
    }
    for (int g = 0; g < n; g++)
        for (int j = 1; j <= STEPS; j++)
            groups[g].first[j] /= groups[g].weight;
    return n;
}

/* ---- the outlook ---- */

/* Per counter, in steps: of the running sessions alone, and with those that follow. */
struct parts {
    double first_mean[STEPS + 1], first_variance[STEPS + 1];
    double all_variance[STEPS + 1];
    double first[STEPS + 1]; /* a running session ends in this step */
    double fresh[STEPS + 1]; /* a new one does */
};

static void compute_parts(struct parts *parts, const struct tl_lifetimes *lifetimes)
{
    struct group groups[GROUPS + 1];
    struct moments fresh, one;
    memset(parts, 0, sizeof(*parts));
    for (int j = 1; j <= STEPS; j++)
        parts->fresh[j] = end_in(lifetimes, 0, j);
    renew(parts->fresh, NULL, &fresh);
    int n = group_by_age(lifetimes, groups);
    for (int g = 0; g < n; g++) {
        double weight = groups[g].weight, ended = 0;
        renew(groups[g].first, &fresh, &one);
        for (int i = 1; i <= STEPS; i++) {
            ended += groups[g].first[i];
            parts->first[i] += weight * groups[g].first[i];
            parts->first_mean[i] += weight * ended;
            parts->first_variance[i] += weight * ended * fmax(0, 1 - ended);
            parts->all_variance[i] += weight * (one.square[i] - one.mean[i] * one.mean[i]);
        }
    }
}

/* Steps through time: ends make room, room is filled. */
static void advance(struct tl_outlook *outlook, const struct parts *parts,
                    const struct tl_outlook_input *input)
{
    double let_in[STEPS + 1]; /* admitted in step i; 0: at once */
    double ends = 0, admitted = fmax(0, -outlook->excess), served = admitted;
    double rate_step = input->admit_per_ms * outlook->step_ms;
    if (rate_step > 0)
        admitted = served = fmin(admitted, 1);
    let_in[0] = admitted;
    outlook->variance[0] = 0;
    outlook->admitted[0] = admitted;
    outlook->served[0] = served;
    double drained = 0, drained_all = 0; /* variances when the excess has ended */
    for (int i = 1; i <= STEPS; i++) {
        double in_step = input->active * parts->first[i] + let_in[0] * parts->fresh[i];
        for (int j = 1; j < i; j++)
            in_step += let_in[j] * (parts->fresh[i - j] + parts->fresh[i - j + 1]) / 2;
        /* Of those admitted in this very step, some end in it, and let others in. */
        if (ends + in_step > outlook->excess)
            in_step /= 1 - parts->fresh[1] / 2;
        ends += in_step;
        double most = fmax(0, ends - outlook->excess);
        if (rate_step > 0)
            most = fmin(most, 1 + rate_step * i);
        let_in[i] = fmax(0, most - admitted);
        admitted += let_in[i];
        served +=
            let_in[i] * exp(fmin(exponent_max, input->left_per_ms * outlook->step_ms * (i - 0.5)));
        outlook->admitted[i] = admitted;
        outlook->served[i] = served;
        double first = input->active * parts->first_variance[i];
        double all = fmin(input->active, input->capacity) * parts->all_variance[i];
        if (ends <= outlook->excess) {
            drained = first;
            drained_all = all;
        }
        outlook->variance[i] = ends <= outlook->excess ? first
                               : outlook->excess > 0   ? drained + fmax(0, all - drained_all)
                                                       : input->capacity * parts->all_variance[i];
    }
}

void tl_outlook_compute(struct tl_outlook *outlook, const struct tl_lifetimes *lifetimes,
                        const struct tl_outlook_input *input)
{
    struct parts parts;
    *outlook = (struct tl_outlook){.known = true,
                                   .step_ms = lifetimes->step_ms,
                                   .excess = input->active - input->capacity,
                                   .left_per_ms = input->left_per_ms,
                                   .left_seen = input->left_seen,
                                   .spread = lifetimes->spread};
    compute_parts(&parts, lifetimes);
    advance(outlook, &parts, input);
    outlook->log_ratio =
        log(fmax((input->waiting - outlook->served[0]) / EXACT, 2)) / (TL_OUTLOOK_NODES - EXACT);
    outlook->per_ms = input->capacity / lifetimes->mean_ms;
    if (input->admit_per_ms > 0)
        outlook->per_ms = fmin(outlook->per_ms, input->admit_per_ms);
    outlook->variance_per_ms = outlook->per_ms * lifetimes->spread;
    /* When the line forms, all sessions begin at once, and those that end first are the short ones:
     * until as many have ended as run, they say less than their number. */
    double ended = lifetimes->ended;
    outlook->observations = ended * fmin(1, ended / fmax(1, fmin(input->active, input->capacity)));
}

/* ---- the wait ---- */

/* The quantile of F(2k, 2n) at deviation `d` of the normal distribution (E. Paulson, "An
 * approximate normalization of the analysis of variance distribution", 1942): the root of a
 * quadratic in its cube root. Where n is so small that it has none, the mean is as uncertain as can
 * be. */
static double f_quantile(double k, double n, double d)
{
    double spread_k = 1 / (9 * k);
    double spread_n = 1 / (9 * fmax(n, 2));
    double a = 1 - spread_n;
    double b = 1 - spread_k;
    double root = sqrt(a * a * spread_k + b * b * spread_n - d * d * spread_k * spread_n);
    double x = (a * b + d * root) / (a * a - d * d * spread_n);
    return x > 0 ? x * x * x : 0;
}

/* When does the running sum of a table reach this value? In steps; above STEPS: not within it. */
static double reach(const double table[STEPS + 1], double value)
{
    if (value <= table[0])
        return 0;
    if (value > table[STEPS])
        return STEPS + 1;
    int low = 0, high = STEPS;
    while (high - low > 1) {
        int middle = (low + high) / 2;
        if (table[middle] < value)
            low = middle;
        else
            high = middle;
    }
    return low + (value - table[low]) / (table[high] - table[low]);
}

/* The moment, in ms, at which this many of the positions are served. */
static double served_at_ms(const struct tl_outlook *outlook, double positions)
{
    double steps = reach(outlook->served, positions);
    if (steps <= STEPS)
        return steps * outlook->step_ms;
    double end_ms = STEPS * outlook->step_ms;
    double beyond = positions - outlook->served[STEPS];
    if (outlook->per_ms <= 0)
        return INFINITY;
    if (outlook->left_per_ms * end_ms > exponent_max || outlook->left_per_ms <= 0)
        return end_ms + beyond / outlook->per_ms;
    /* per_ms * integral of exp(left t) from end_ms on */
    double grown = exp(outlook->left_per_ms * end_ms);
    return end_ms +
           log1p(beyond * outlook->left_per_ms / outlook->per_ms / grown) / outlook->left_per_ms;
}

static double at(const double table[STEPS + 1], double per_ms, const struct tl_outlook *outlook,
                 double time_ms)
{
    double steps = time_ms / outlook->step_ms;
    if (steps >= STEPS)
        return table[STEPS] + per_ms * (time_ms - STEPS * outlook->step_ms);
    int i = (int)steps;
    return table[i] + (table[i + 1] - table[i]) * (steps - i);
}

/* The time until the position-th admission, in ms: at deviation `z` of the normal distribution, 0
 * for the median. INFINITY: never, as things are. */
static double wait_ms_at(const struct tl_outlook *outlook, double position, double z)
{
    double mean_ms = served_at_ms(outlook, position);
    if (!isfinite(mean_ms))
        return INFINITY;
    double admitted = at(outlook->admitted, outlook->per_ms, outlook, mean_ms);
    double needed = admitted + outlook->excess; /* ends */
    if (needed <= 0)
        return mean_ms;
    double leave = fmax(0, position - admitted);
    /* Those who leave vary, too, and so does what is known of them. */
    double left_variance = leave + leave * leave / fmax(1, outlook->left_seen);
    double known = outlook->spread / outlook->observations + drift * drift;
    double wait_ms = mean_ms;
    /* How much the ends vary depends on the time: on that of the quantile itself, found in turns.
     */
    for (int turn = 0; turn < TURNS; turn++) {
        double ends = outlook->excess + at(outlook->admitted, outlook->per_ms, outlook, wait_ms);
        double variance = at(outlook->variance, outlook->variance_per_ms, outlook, wait_ms);
        double dispersion = fmax(dispersion_min, variance / fmax(ends, 1e-9));
        dispersion *= 1 + skew * fmax(0, outlook->spread - 1) * exp(-needed / skewed_up_to);
        double shape = needed / (dispersion + left_variance / needed);
        double wanted = fmax(0, needed * f_quantile(shape, 1 / known, z) - outlook->excess);
        wait_ms = served_at_ms(outlook, position * wanted / fmax(admitted, 1e-9));
    }
    return wait_ms;
}

static struct tl_eta_range range_at(const struct tl_outlook *outlook, double position)
{
    return (struct tl_eta_range){.low_s = wait_ms_at(outlook, position, -TL_OUTLOOK_Z) / 1000,
                                 .median_s = wait_ms_at(outlook, position, 0) / 1000,
                                 .high_s = wait_ms_at(outlook, position, TL_OUTLOOK_Z) / 1000};
}

static const struct tl_outlook_node *node_at(struct tl_outlook *outlook, int i)
{
    struct tl_outlook_node *node = &outlook->nodes[i];
    if (!node->known) {
        node->known = true;
        node->position = outlook->served[0] +
                         (i < EXACT ? i + 1 : EXACT * exp(outlook->log_ratio * (i + 1 - EXACT)));
        node->range = range_at(outlook, node->position);
    }
    return node;
}

struct tl_eta_range tl_outlook_range(struct tl_outlook *outlook, double position)
{
    double beyond = position - outlook->served[0];
    if (beyond <= 0) /* at once */
        return (struct tl_eta_range){0};
    if (beyond <= EXACT)
        return node_at(outlook, (int)beyond - 1)->range;
    double i = EXACT - 1 + log(beyond / EXACT) / outlook->log_ratio;
    if (i >= TL_OUTLOOK_NODES - 1)
        return range_at(outlook, position);
    const struct tl_outlook_node *from = node_at(outlook, (int)i);
    const struct tl_outlook_node *to = node_at(outlook, (int)i + 1);
    double part = (position - from->position) / (to->position - from->position);
    const struct tl_eta_range *a = &from->range, *b = &to->range;
    return (struct tl_eta_range){.low_s = a->low_s + part * (b->low_s - a->low_s),
                                 .median_s = a->median_s + part * (b->median_s - a->median_s),
                                 .high_s = a->high_s + part * (b->high_s - a->high_s)};
}
