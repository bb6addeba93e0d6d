/* SPDX-License-Identifier: Apache-2.0 */
#include "common/line/budget.h"

enum { STEP_MS = 20, CATCH_UP_MS = 100 }; /* as in rate.lua */

static int64_t at_least(int64_t value, int64_t least)
{
    return value > least ? value : least;
}

static int64_t at_most(int64_t value, int64_t most)
{
    return value < most ? value : most;
}

/* Of numbers that are not negative. */
static int64_t divide_up(int64_t value, int64_t by)
{
    return (value + by - 1) / by;
}

/* When a slot is due, ms after the start of the period. Slots from `admit` on are those of the next
 * periods. */
static int64_t offset_of(const struct tl_budget *budget, int64_t slot)
{
    int64_t admit = (int64_t)budget->rate.admit, every = budget->rate.every_ms;
    int64_t group = slot % admit / budget->group;
    return slot / admit * every + divide_up(group * budget->group * every, admit);
}

/* How many slots of a period are due elapsed_ms after its start. */
static int64_t slots_due(const struct tl_budget *budget, int64_t elapsed_ms)
{
    int64_t admit = (int64_t)budget->rate.admit, every = budget->rate.every_ms;
    if (elapsed_ms < 0)
        return 0;
    if (elapsed_ms >= every)
        return admit;
    return at_most((elapsed_ms * admit / (every * budget->group) + 1) * budget->group, admit);
}

static void next_period(struct tl_budget *budget)
{
    budget->from_ms += budget->rate.every_ms + budget->late_ms;
    budget->used = budget->late_ms = 0;
}

/* Slots that were due before this moment, and not taken, are lost. */
static void lapse(struct tl_budget *budget, int64_t before_ms)
{
    int64_t every = budget->rate.every_ms;
    if (budget->from_ms + every + budget->late_ms < before_ms) {
        next_period(budget);
        budget->from_ms += (before_ms - 1 - budget->from_ms) / every * every;
    }
    budget->used = at_least(budget->used, slots_due(budget, before_ms - 1 - budget->from_ms));
    if (budget->used >= (int64_t)budget->rate.admit)
        next_period(budget);
}

void tl_budget_begin(struct tl_budget *budget, const struct tl_rate *rate, int64_t now_ms)
{
    int64_t admit = (int64_t)rate->admit, every = rate->every_ms;
    int64_t group = rate->batches ? admit : divide_up(admit * at_most(STEP_MS, every), every);
    int64_t interval_ms = divide_up(group * every, admit);
    int64_t catch_up_ms = at_least(at_most(CATCH_UP_MS, every / 10), interval_ms - 1);
    *budget = (struct tl_budget){.rate = *rate,
                                 .group = group,
                                 .interval_ms = interval_ms,
                                 .catch_up_ms = catch_up_ms,
                                 .from_ms = now_ms + at_most(every, catch_up_ms + 4 * interval_ms)};
    if (rate->batches)
        budget->rate.burst = 0;
}

uint64_t tl_budget_left(struct tl_budget *budget, int64_t now_ms)
{
    const struct tl_rate *rate = &budget->rate;
    int64_t burst_ms = divide_up((int64_t)rate->burst * rate->every_ms, (int64_t)rate->admit);
    if (!rate->batches)
        lapse(budget, now_ms - budget->catch_up_ms - burst_ms);
    return (uint64_t)at_least(slots_due(budget, now_ms - budget->from_ms) - budget->used, 0);
}

void tl_budget_spend(struct tl_budget *budget, uint64_t n, bool ends, int64_t now_ms)
{
    if (n > 0) {
        int64_t due_ms =
            budget->from_ms + offset_of(budget, budget->used + (int64_t)budget->rate.burst);
        budget->late_ms = at_least(budget->late_ms, now_ms - due_ms);
        budget->used += (int64_t)n;
    }
    if (ends || budget->used >= (int64_t)budget->rate.admit)
        next_period(budget);
}

int64_t tl_budget_due_ms(const struct tl_budget *budget)
{
    return budget->from_ms + offset_of(budget, budget->used);
}
