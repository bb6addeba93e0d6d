/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "worker/queue/eta.h"

enum {
    RUNNING_MAX = 1024, /* sessions followed at once */
    LATELY = 64,        /* ends that are compared with those before */
    BINS = TL_LIFETIME_BINS,
};

/* The number of ends that make a hazard. */
static const double together = 6;
/* When the line forms, all sessions begin together, and the first to end are the short ones. So
 * many of those that run must have ended before they say anything. */
static const double share_min = 0.2;
static const double clearly = 3.5; /* standard deviations */
static const double spread_min = 0.01, spread_max = 9;

static bool is_followed(void *context, tl_place place)
{
    const struct tl_sessions *sessions = context;
    return (tl_place_seq(place) & ((UINT64_C(1) << sessions->sparse) - 1)) == 0;
}

static void follow(struct tl_sessions *sessions, tl_place place, uint64_t start)
{
    if (!is_followed(sessions, place))
        return;
    /* Without memory this session is not followed. */
    (void)tl_placemap_put(&sessions->running, place, start);
    while (sessions->running.count > RUNNING_MAX) {
        sessions->sparse++;
        tl_placemap_keep(&sessions->running, is_followed, sessions);
    }
}

void tl_sessions_found(struct tl_sessions *sessions, tl_place place)
{
    follow(sessions, place, 0);
}

void tl_sessions_started(struct tl_sessions *sessions, tl_place place, int64_t now_ms)
{
    if (!sessions->begun)
        sessions->since_ms = now_ms;
    sessions->begun = true;
    follow(sessions, place, (uint64_t)now_ms + 1);
}

/* The i-th of the ends remembered, the oldest first. */
static const struct tl_session_ended *nth(const struct tl_sessions *sessions, size_t i)
{
    return &sessions->ended[(sessions->first + i) % TL_SESSIONS_ENDED_MAX];
}

/* The mean of some of the ends remembered, in ms, and their variance. */
static double mean_of(const struct tl_sessions *sessions, size_t from, size_t to, double *variance)
{
    double sum = 0, squares = 0, n = (double)(to - from);
    for (size_t i = from; i < to; i++) {
        const struct tl_session_ended *ended = nth(sessions, i);
        double lasted = (double)(ended->end_ms - ended->start_ms);
        sum += lasted;
        squares += lasted * lasted;
    }
    *variance = fmax(0, squares / n - sum / n * sum / n);
    return sum / n;
}

/* If the sessions that ended last were clearly longer or shorter than those before, forgets those
 * before. */
static void forget_other_times(struct tl_sessions *sessions)
{
    double before, lately;
    if (sessions->n < 2 * (size_t)LATELY)
        return;
    size_t from = sessions->n - LATELY;
    double mean = mean_of(sessions, 0, from, &before);
    double mean_lately = mean_of(sessions, from, sessions->n, &lately);
    if (fabs(mean_lately - mean) <=
        clearly * sqrt(fmax(before, lately) * (1.0 / LATELY + 1.0 / (double)from)))
        return;
    sessions->since_ms = nth(sessions, from - 1)->end_ms;
    sessions->first = (sessions->first + from) % TL_SESSIONS_ENDED_MAX;
    sessions->n = LATELY;
}

void tl_sessions_ended(struct tl_sessions *sessions, tl_place place, int64_t now_ms)
{
    uint64_t start;
    if (!is_followed(sessions, place) || !tl_placemap_remove(&sessions->running, place, &start) ||
        start == 0)
        return;
    struct tl_session_ended *ended =
        &sessions->ended[(sessions->first + sessions->n) % TL_SESSIONS_ENDED_MAX];
    if (sessions->n == TL_SESSIONS_ENDED_MAX) {
        sessions->since_ms = ended->end_ms;
        sessions->first = (sessions->first + 1) % TL_SESSIONS_ENDED_MAX;
    } else {
        sessions->n++;
    }
    *ended = (struct tl_session_ended){.start_ms = (int64_t)start - 1, .end_ms = now_ms};
    if (++sessions->seen % (LATELY / 2) == 0)
        forget_other_times(sessions);
}

/* ---- the life table ---- */

struct look {
    const struct tl_sessions *sessions;
    int64_t now_ms;
    double seen_ms; /* time that sessions were seen running */
    double unknown;
    struct tl_lifetimes *lifetimes;
    double whole[BINS + 2]; /* differences: how many were seen during all of a bin */
    double part[BINS + 1];  /* steps that others were seen during it */
    double ends[BINS + 1];
};

/* From which age on the session was seen. */
static double entry_ms(const struct look *look, int64_t start_ms)
{
    int64_t since_ms = look->sessions->since_ms;
    return since_ms > start_ms ? (double)(since_ms - start_ms) : 0;
}

/* Adds what was seen of a session between two ages. The last bin holds all that is older. */
static void add_seen(struct look *look, double from_ms, double to_ms)
{
    double from = fmax(0, from_ms / look->lifetimes->step_ms);
    double to = to_ms / look->lifetimes->step_ms;
    if (to > BINS) {
        look->part[BINS] += to - fmax(from, BINS);
        to = BINS;
    }
    if (from >= to)
        return;
    int first = (int)from, last = (int)to;
    if (first == last) {
        look->part[first] += to - from;
        return;
    }
    look->part[first] += first + 1 - from;
    look->part[last] += to - last;
    look->whole[first + 1] += 1;
    look->whole[last] -= 1;
}

static void add_running(struct look *look, int64_t start_ms)
{
    double age_ms = (double)(look->now_ms - start_ms);
    add_seen(look, entry_ms(look, start_ms), age_ms);
    double age = fmin(fmax(0, age_ms / look->lifetimes->step_ms), BINS);
    int bin = age >= BINS ? BINS - 1 : (int)age;
    look->lifetimes->ages[bin] += bin + 1 - age;
    look->lifetimes->ages[bin + 1] += age - bin;
}

/* The hazard at each age, per step. Neighbouring ages are taken together until so much was seen of
 * them that `together` sessions ended, or would have at the overall hazard. What comes after that
 * goes on like the last of these. */
static void find_hazards(const struct look *look, double hazards[BINS + 1])
{
    const double overall = 1.0 / TL_LIFETIME_PER_MEAN;
    double ends = 0, steps = 0, whole = 0, last = overall;
    int from = 0;
    for (int i = 0; i <= BINS; i++) {
        whole += i < BINS ? look->whole[i] : 0;
        steps += look->part[i] + (i < BINS ? whole : 0);
        ends += look->ends[i];
        bool enough = fmax(ends, steps * overall) >= together;
        if (!enough && i < BINS)
            continue;
        if (enough)
            last = (ends + 0.5) / (steps + 0.5 / overall);
        else /* the rest: what is missing is as it was before */
            last = together / (steps + fmax(0, together - ends) / last);
        for (; from <= i; from++)
            hazards[from] = last;
        ends = steps = 0;
    }
}

/* Survival from hazards, and with it the moments. */
static void finish(struct look *look)
{
    struct tl_lifetimes *lifetimes = look->lifetimes;
    double hazards[BINS + 1], mean = 0, square = 0; /* in steps */
    find_hazards(look, hazards);
    lifetimes->survival[0] = 1;
    for (int i = 0; i < 2 * BINS; i++) {
        double h = hazards[i < BINS ? i : BINS];
        double survival = lifetimes->survival[i];
        lifetimes->survival[i + 1] = survival * exp(-h);
        double lived = (survival - lifetimes->survival[i + 1]) / h;
        mean += lived;
        square += 2 * lived * (i + 0.5);
    }
    double rest = lifetimes->survival[2 * BINS] / hazards[BINS];
    mean += rest;
    square += 2 * rest * (2 * BINS + 1 / hazards[BINS]);
    lifetimes->mean_ms = mean * lifetimes->step_ms;
    lifetimes->spread = fmin(spread_max, fmax(spread_min, square / (mean * mean) - 1));
}

bool tl_sessions_look(const struct tl_sessions *sessions, int64_t now_ms,
                      struct tl_lifetimes *lifetimes)
{
    *lifetimes = (struct tl_lifetimes){.ended = (double)sessions->n};
    struct look look = {.sessions = sessions, .now_ms = now_ms, .lifetimes = lifetimes};
    const struct tl_placemap *running = &sessions->running;
    const struct tl_placemap_entry *session;
    if (sessions->n < TL_SESSIONS_ENDED_MIN)
        return false;
    for (size_t i = 0; (session = tl_placemap_next(running, &i)) != NULL;) {
        const int64_t start_ms = (int64_t)session->value - 1;
        if (session->value == 0)
            look.unknown++;
        else
            look.seen_ms += fmax(0, (double)(now_ms - start_ms) - entry_ms(&look, start_ms));
    }
    double aged = (double)running->count - look.unknown;
    if ((double)sessions->seen < share_min * aged)
        return false;
    for (size_t i = 0; i < sessions->n; i++) {
        const struct tl_session_ended *ended = nth(sessions, i);
        look.seen_ms +=
            (double)(ended->end_ms - ended->start_ms) - entry_ms(&look, ended->start_ms);
    }
    look.seen_ms = fmax(look.seen_ms, (double)sessions->n); /* at least a millisecond each */
    lifetimes->step_ms = look.seen_ms / (double)sessions->n / TL_LIFETIME_PER_MEAN;
    for (size_t i = 0; i < sessions->n; i++) {
        const struct tl_session_ended *ended = nth(sessions, i);
        double age_ms = (double)(ended->end_ms - ended->start_ms);
        add_seen(&look, entry_ms(&look, ended->start_ms), age_ms);
        look.ends[(int)fmin(age_ms / lifetimes->step_ms, BINS)]++;
    }
    for (size_t i = 0; (session = tl_placemap_next(running, &i)) != NULL;)
        if (session->value != 0)
            add_running(&look, (int64_t)session->value - 1);
    finish(&look);
    if (running->count > 0) {
        lifetimes->unknown = look.unknown / (double)running->count;
        for (int i = 0; i <= BINS; i++)
            lifetimes->ages[i] /= (double)running->count;
    } else {
        lifetimes->unknown = 1;
    }
    return true;
}
