/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When a policy by rate admits the next visitors, by the rule of the store: periods of so many
 * slots, in groups that are due at fixed times (docs/contributors/wire-format.md).
 * common/store/line/rate.lua decides by it; here a program that has no store follows. It knows
 * neither a clock that jumps nor a rate that changes.
 */
#ifndef TL_BUDGET_H
#define TL_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

struct tl_rate {
    uint64_t admit;   /* at least one, */
    int64_t every_ms; /* in each period of this length */
    uint64_t burst;   /* at most this many more in one period; not in batches */
    bool batches;     /* all of a period at its start; else spread over it */
};

struct tl_budget {
    struct tl_rate rate;
    int64_t group;       /* how many slots are due together, */
    int64_t interval_ms; /* and how far apart */
    int64_t catch_up_ms; /* slots that are due for longer, and not covered by the burst, lapse */
    int64_t from_ms;     /* when this period began */
    int64_t used;        /* of its slots */
    int64_t late_ms;     /* by how much the latest of them was taken late: the next period
                            begins that much later */
};

/* Nothing may be admitted now: as after an admission of all that was allowed. */
void tl_budget_begin(struct tl_budget *budget, const struct tl_rate *rate, int64_t now_ms);
/* How many may be admitted now. What was not used in time has lapsed. */
uint64_t tl_budget_left(struct tl_budget *budget, int64_t now_ms);
/* n are admitted now, at most as many as are left. ends: a batch is over, and what is left of it
 * lapses. */
void tl_budget_spend(struct tl_budget *budget, uint64_t n, bool ends, int64_t now_ms);
/* When the next one may be admitted; it may be past. */
int64_t tl_budget_due_ms(const struct tl_budget *budget);

#endif
