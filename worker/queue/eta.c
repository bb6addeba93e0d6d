/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "worker/queue/eta.h"

enum {
    NAMED_MS = 60000,     /* a reason is named for this long */
    REFRESH_MIN_MS = 100, /* between two computations of the outlook: no place is told more often */
    REFRESH_MAX_MS = 1000,
    LEFT_MAX = 256, /* then half of them are forgotten, with their time */
    STEP_MS = 5000, /* admissions are counted in steps of it */
};

static const double stalled_ms = 10e3;

const char *tl_eta_reason_name(enum tl_eta_reason reason)
{
    static const char *const names[] = {
        [TL_ETA_PLAIN] = NULL,
        [TL_ETA_NOT_KNOWN] = "not_known",
        [TL_ETA_PAUSED] = "paused",
        [TL_ETA_NO_CAPACITY] = "no_capacity",
        [TL_ETA_STALLED] = "stalled",
        [TL_ETA_CAPACITY_LOWERED] = "capacity_lowered",
        [TL_ETA_RATE_LOWERED] = "rate_lowered",
        [TL_ETA_MORE_AHEAD] = "more_ahead",
        [TL_ETA_SLOWER] = "slower",
    };
    return names[reason];
}

/* ---- what happens ---- */

/* Could a visitor be admitted now, as far as capacity says? */
static bool is_possible(const struct tl_eta *eta)
{
    return eta->open && eta->waiting > 0 &&
           (!eta->rule.counted || eta->active < eta->rule.capacity);
}

/* Lets time pass up to now_ms, before something changes. */
static void pass(struct tl_eta *eta, int64_t now_ms)
{
    int64_t step = now_ms / STEP_MS;
    if (eta->step < step - TL_ETA_STEPS)
        eta->step = step - TL_ETA_STEPS;
    while (eta->step < step)
        eta->admitted[++eta->step % TL_ETA_STEPS] = 0;
    if (now_ms > eta->now_ms)
        eta->left_ms += (double)eta->waiting * (double)(now_ms - eta->now_ms);
    if (!is_possible(eta))
        eta->possible_ms = now_ms;
    eta->now_ms = now_ms;
}

static double rate_per_ms(const struct tl_eta_rule *rule)
{
    return rule->admit > 0 ? (double)rule->admit / (double)rule->every_ms : INFINITY;
}

void tl_eta_grew(struct tl_eta *eta, enum tl_eta_reason reason, int64_t now_ms)
{
    /* What an operator changed explains more than that it is slower, which follows. */
    if (reason == TL_ETA_SLOWER && eta->grew != TL_ETA_PLAIN && eta->grew != TL_ETA_SLOWER &&
        now_ms < eta->grew_ms + NAMED_MS)
        reason = eta->grew;
    eta->grew = reason;
    eta->grew_ms = now_ms;
}

void tl_eta_set_rule(struct tl_eta *eta, const struct tl_eta_rule *rule, int64_t now_ms)
{
    const struct tl_eta_rule before = eta->rule;
    pass(eta, now_ms);
    eta->rule = *rule;
    eta->outdated = true;
    if (eta->waiting == 0)
        return;
    if (rule->counted && (!before.counted || rule->capacity < before.capacity))
        tl_eta_grew(eta, TL_ETA_CAPACITY_LOWERED, now_ms);
    if (rate_per_ms(rule) < rate_per_ms(&before))
        tl_eta_grew(eta, TL_ETA_RATE_LOWERED, now_ms);
}

void tl_eta_set_open(struct tl_eta *eta, bool open, int64_t now_ms)
{
    if (open == eta->open)
        return;
    pass(eta, now_ms);
    eta->open = open;
    eta->outdated = true;
}

void tl_eta_set_line(struct tl_eta *eta, const struct tl_line *line, int64_t now_ms)
{
    pass(eta, now_ms);
    eta->seen_since_ms = now_ms;
    memset(eta->admitted, 0, sizeof(eta->admitted));
    tl_placemap_clear(&eta->sessions.running);
    const struct tl_placemap_entry *entry;
    for (size_t i = 0; (entry = tl_placemap_next(&line->active, &i)) != NULL;)
        tl_sessions_found(&eta->sessions, entry->place);
    eta->waiting = tl_line_waiting(line);
    eta->active = tl_line_active(line);
    eta->possible_ms = now_ms;
    eta->outdated = true;
}

void tl_eta_apply(struct tl_eta *eta, const struct tl_event_entry *entry, int64_t now_ms)
{
    uint64_t admitted = 0;
    pass(eta, now_ms);
    for (size_t i = 0; i < entry->n_events; i++) {
        const struct tl_event *event = &entry->events[i];
        for (size_t r = 0; r < event->places.n; r++) {
            const struct tl_run *run = &event->places.runs[r];
            if (event->kind == TL_EVENT_REMOVED)
                eta->left += (double)run->count;
            if (event->kind == TL_EVENT_ADMITTED)
                admitted += run->count;
            for (uint64_t k = 0; event->kind == TL_EVENT_ADMITTED && k < run->count; k++)
                tl_sessions_started(&eta->sessions, run->first + k, now_ms);
            for (uint64_t k = 0; event->kind == TL_EVENT_FREED && k < run->count; k++)
                tl_sessions_ended(&eta->sessions, run->first + k, now_ms);
        }
    }
    if (eta->left > LEFT_MAX) {
        eta->left /= 2;
        eta->left_ms /= 2;
    }
    eta->waiting = entry->waiting;
    eta->active = entry->active;
    if (admitted > 0)
        eta->possible_ms = now_ms;
    eta->admitted[eta->step % TL_ETA_STEPS] += admitted;
    eta->changed = true;
}

bool tl_eta_admitted(const struct tl_eta *eta, int64_t now_ms, uint64_t *count)
{
    int64_t step = now_ms / STEP_MS;
    *count = 0;
    for (int64_t i = step < TL_ETA_STEPS ? 0 : step - TL_ETA_STEPS + 1; i <= eta->step; i++)
        *count += eta->admitted[i % TL_ETA_STEPS];
    return eta->seen_since_ms > 0 && now_ms - eta->seen_since_ms >= (TL_ETA_STEPS - 1) * STEP_MS;
}

/* ---- the estimate ---- */

static double left_per_ms(const struct tl_eta *eta)
{
    return eta->left_ms > 0 ? eta->left / eta->left_ms : 0;
}

static void refresh(struct tl_eta *eta, int64_t now_ms)
{
    const struct tl_eta_rule *rule = &eta->rule;
    double due_ms = eta->changed ? REFRESH_MIN_MS : REFRESH_MAX_MS;
    if (!eta->outdated && (double)(now_ms - eta->computed_ms) < due_ms)
        return;
    struct tl_lifetimes lifetimes;
    struct tl_outlook_input input = {.waiting = (double)eta->waiting,
                                     .active = (double)eta->active,
                                     .capacity = (double)rule->capacity,
                                     .left_per_ms = left_per_ms(eta),
                                     .left_seen = eta->left,
                                     .admit_per_ms = rule->admit > 0 ? rate_per_ms(rule) : 0};
    eta->computed_ms = now_ms;
    eta->changed = eta->outdated = false;
    eta->outlook.known = false;
    if (tl_sessions_look(&eta->sessions, now_ms, &lifetimes))
        tl_outlook_compute(&eta->outlook, &lifetimes, &input);
}

/* What the rate says. It is kept exactly, except that a delay of the admitter costs its length once
 * in a period (common/store/line/rate.lua). */
static struct tl_eta_range by_rate(const struct tl_eta_rule *rule, double position)
{
    double every_s = (double)rule->every_ms / 1000;
    double most_s = ceil(position / (double)rule->admit) * every_s;
    if (rule->batches) /* the next one at any time within the period */
        return (struct tl_eta_range){
            .low_s = most_s - every_s, .median_s = most_s - every_s / 2, .high_s = most_s};
    double one_s = every_s / (double)rule->admit;
    double mean_s = position * one_s;
    return (struct tl_eta_range){.low_s = fmax(0, mean_s - ((double)rule->burst + 1) * one_s),
                                 .median_s = mean_s,
                                 .high_s = fmin(most_s, mean_s * 1.05 + one_s + 1)};
}

/* Of this position, how many are admitted at this steady rate, and do not leave before? */
static double stay(double position, double left, double admitted)
{
    return left > 0 ? log1p(position * left / admitted) * admitted / left : position;
}

/* Only a rate limits admission. */
static struct tl_eta_range by_rate_alone(const struct tl_eta *eta, double position)
{
    double left = left_per_ms(eta);
    double sure = 1 - fmin(1, TL_OUTLOOK_Z / sqrt(fmax(1, eta->left))); /* the least share of it */
    double admitted = rate_per_ms(&eta->rule);
    double few = fmax(1, stay(position, left * (2 - sure), admitted));
    double most = fmax(1, stay(position, left * sure, admitted));
    return (struct tl_eta_range){
        .low_s = by_rate(&eta->rule, few).low_s,
        .median_s = by_rate(&eta->rule, fmax(1, stay(position, left, admitted))).median_s,
        .high_s = by_rate(&eta->rule, most).high_s};
}

/* Is no visitor admitted although capacity and rate allow it? */
static bool is_stalled(const struct tl_eta *eta, int64_t now_ms)
{
    const struct tl_eta_rule *rule = &eta->rule;
    double gap_ms = 0;
    if (rule->admit > 0)
        gap_ms = (double)rule->every_ms / (rule->batches ? 1 : (double)rule->admit);
    return is_possible(eta) && (double)(now_ms - eta->possible_ms) > 2 * gap_ms + stalled_ms;
}

static enum tl_eta_reason why_none(const struct tl_eta *eta, int64_t now_ms)
{
    const struct tl_eta_rule *rule = &eta->rule;
    if (!eta->open)
        return TL_ETA_PAUSED;
    if (rule->counted && rule->capacity == 0)
        return TL_ETA_NO_CAPACITY;
    return is_stalled(eta, now_ms) ? TL_ETA_STALLED : TL_ETA_PLAIN;
}

bool tl_eta_estimate(struct tl_eta *eta, uint64_t position, int64_t now_ms,
                     struct tl_eta_range *range, enum tl_eta_reason *reason)
{
    const struct tl_eta_rule *rule = &eta->rule;
    *reason = why_none(eta, now_ms);
    if (*reason != TL_ETA_PLAIN)
        return false;
    if (eta->grew != TL_ETA_PLAIN && now_ms < eta->grew_ms + NAMED_MS)
        *reason = eta->grew;
    if (!rule->counted) {
        *range = by_rate_alone(eta, (double)position);
        return true;
    }
    refresh(eta, now_ms);
    if (eta->outlook.known)
        *range = tl_outlook_range(&eta->outlook, (double)position);
    if (!eta->outlook.known || !isfinite(range->high_s)) {
        *reason = TL_ETA_NOT_KNOWN;
        return false;
    }
    if (rule->admit > 0) {
        double stays = stay((double)position, left_per_ms(eta), rate_per_ms(rule));
        struct tl_eta_range best = by_rate(rule, fmax(1, stays));
        range->low_s = fmax(range->low_s, best.low_s);
        range->median_s = fmax(range->median_s, best.median_s);
        range->high_s = fmax(range->high_s, best.high_s);
    }
    return true;
}
