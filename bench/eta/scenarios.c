/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>

#include "lab/crowd.h"
#include "lab/memory.h"

#include "bench/eta/scenarios.h"

static int64_t exponential(uint64_t *random, double mean_ms)
{
    return 1 + (int64_t)tl_exponential(mean_ms, tl_random_share(random));
}

/* spread: variance over squared mean */
static int64_t lognormal(uint64_t *random, double mean_ms, double spread)
{
    double u = tl_random_share(random), v = tl_random_share(random);
    return 1 + (int64_t)tl_lognormal(mean_ms, sqrt(spread), u, v);
}

/* ---- the bank ---- */

static void bank_before(const struct bank *bank, unsigned fold, uint64_t counters, uint64_t seed,
                        struct outcome *outcome)
{
    size_t n = bank->n, quarter = n / 4, from = n - quarter;
    struct visitor *visitors = tl_xalloc(n, sizeof(struct visitor));
    uint64_t random = seed;
    double mean_s = 0;
    size_t *order = tl_xalloc(n, sizeof(*order));
    for (size_t i = 0; i < n; i++)
        order[i] = i < fold * quarter ? i : i < from ? i + quarter : fold * quarter + i - from;
    for (size_t i = from; i < n; i++)
        order[i] = fold * quarter + tl_random_next(&random) % quarter;
    for (size_t i = 0; i < from; i++)
        mean_s += (double)bank->customers[order[i]].service_s / (double)from;
    /* Half as many again come as can be served. */
    double day_s = (double)(bank->customers[n - 1].arrival_s - bank->customers[0].arrival_s);
    double speed = 1.5 * day_s * (double)counters / (mean_s * (double)n);
    for (size_t i = 0; i < n; i++)
        visitors[i] =
            (struct visitor){.arrives_ms = 1 + (int64_t)((double)(bank->customers[i].arrival_s -
                                                                  bank->customers[0].arrival_s) *
                                                         1000 / speed),
                             .session_ms = bank->customers[order[i]].service_s * 1000,
                             .patience_ms = INT64_MAX};
    struct crowd crowd = {.seed = seed,
                          .visitors = visitors,
                          .n = n,
                          .capacity = counters,
                          .look_ms = 60000,
                          .judge_from = visitors[from].arrives_ms,
                          .session_ms = mean_s * 1000};
    crowd.until_ms = visitors[n - 1].arrives_ms + (int64_t)(mean_s * 1000 * (double)n);
    crowd_run(&crowd, outcome);
    free(order);
    free(visitors);
}

void scenario_bank(const struct bank *bank, unsigned fold, uint64_t seed, struct outcome *outcome)
{
    static const uint64_t counters[] = {1, 2, 3, 5};
    for (size_t i = 0; i < sizeof(counters) / sizeof(counters[0]); i++)
        bank_before(bank, fold, counters[i], seed * 100 + counters[i], outcome);
}

/* ---- an opening ---- */

enum sessions { EXPONENTIAL, EVEN, NO_SHOWS, BANK, KINDS };

static int64_t session(const struct bank *bank, enum sessions kind, uint64_t *random)
{
    switch (kind) {
    case EXPONENTIAL:
        return exponential(random, 60e3);
    case EVEN: /* a check-out that takes everybody about as long */
        return lognormal(random, 90e3, 0.2);
    case NO_SHOWS: /* one in seven never comes: the claim time ends */
        return tl_random_next(random) % 7 == 0 ? 30000 : lognormal(random, 90e3, 0.6);
    case BANK:
    case KINDS:
        break;
    }
    return 300 * bank->customers[tl_random_next(random) % bank->n].service_s;
}

static void opening(const struct bank *bank, enum sessions kind, uint64_t capacity, bool patient,
                    uint64_t seed, struct outcome *outcome)
{
    uint64_t random = seed;
    double mean_ms = 0;
    for (int i = 0; i < 1000; i++)
        mean_ms += (double)session(bank, kind, &random) / 1000;
    size_t at_once = 8 * capacity, n = 20 * capacity;
    struct visitor *visitors = tl_xalloc(n, sizeof(struct visitor));
    double at_ms = 1;
    for (size_t i = 0; i < n;
         i++) { /* the crowd within a minute, then a little less than can go in */
        at_ms += (double)exponential(&random, i < at_once ? 60e3 / (double)at_once
                                                          : mean_ms / (double)capacity / 0.9);
        visitors[i] = (struct visitor){.arrives_ms = (int64_t)at_ms,
                                       .session_ms = session(bank, kind, &random),
                                       .patience_ms =
                                           patient ? INT64_MAX : exponential(&random, 8 * mean_ms)};
    }
    struct crowd crowd = {.seed = seed,
                          .visitors = visitors,
                          .n = n,
                          .capacity = capacity,
                          .look_ms = 10000,
                          .session_ms = mean_ms,
                          .until_ms = (int64_t)(at_ms + 30 * mean_ms)};
    int64_t pause_ms = (int64_t)((4 + 4 * tl_random_share(&random)) * mean_ms);
    crowd.changes[crowd.n_changes++] = (struct change){pause_ms, capacity, true};
    crowd.changes[crowd.n_changes++] = (struct change){pause_ms + 60000, capacity, false};
    crowd_run(&crowd, outcome);
    free(visitors);
}

void scenario_crowd(const struct bank *bank, uint64_t seed, struct outcome *outcome)
{
    static const uint64_t capacities[] = {10, 50};
    for (unsigned kind = 0; kind < KINDS; kind++)
        for (size_t i = 0; i < 2; i++)
            opening(bank, (enum sessions)kind, capacities[i], (seed + kind + i) % 2 == 0,
                    seed * 1000 + kind * 10 + i, outcome);
}

/* ---- 20 -> 5 -> 20 ---- */

void scenario_steps(uint64_t seed, struct outcome *outcome)
{
    uint64_t random = seed;
    enum { N = 1500 };
    const double mean_ms = 20e3;
    struct visitor *visitors = tl_xalloc(N, sizeof(struct visitor));
    double at_ms = 1;
    bool even = seed % 2 == 0;
    struct crowd crowd = {.seed = seed,
                          .visitors = visitors,
                          .n = N,
                          .capacity = 20,
                          .look_ms = 2000,
                          .session_ms = mean_ms};
    crowd.changes[crowd.n_changes++] = (struct change){300000, 5, false};
    crowd.changes[crowd.n_changes++] = (struct change){900000, 20, false};
    crowd.until_ms = 1500000;
    for (size_t i = 0; i < N; i++) {
        /* As many come as can be served: by 20, by 5, by 20; in between somewhat more or less. */
        double busy = at_ms < 300000 || at_ms > 900000 ? 20 : 5;
        at_ms += (double)exponential(&random, mean_ms / busy);
        visitors[i] = (struct visitor){.arrives_ms = (int64_t)at_ms,
                                       .session_ms = even ? lognormal(&random, mean_ms, 0.3)
                                                          : exponential(&random, mean_ms),
                                       .patience_ms = INT64_MAX};
    }
    crowd_run(&crowd, outcome);
    free(visitors);
}
