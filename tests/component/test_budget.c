/* SPDX-License-Identifier: Apache-2.0 */
/* The budget of a rate in C, beside that of the store: random rates and histories, in which both
 * must allow the same at each step, and at the same time next. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/line/budget.h"
#include "rate_world.h"
#include "tests/unit/random.h"

enum { HISTORIES = 60, STEPS = 120 };

static uint64_t random_state;

static long long below(long long n)
{
    return (long long)random_below(&random_state, (uint64_t)n);
}

static struct rule any_rate(void)
{
    static const long long admits[] = {1, 3, 7, 50, 333, 1000}, everys[] = {100, 101, 1000, 60000};
    struct rule rule = {.admit = admits[below(6)], .every = everys[below(4)]};
    rule.batches = below(3) == 0;
    rule.burst = rule.batches ? 0 : below(3) * below(20);
    return rule;
}

/* A step of both, that may admit at most `most`. */
static void step(struct world *world, struct tl_budget *budget, long long *waiting, long long most)
{
    uint64_t left = tl_budget_left(budget, world->time_ms);
    long long n = (long long)left < most ? (long long)left : most;
    n = n < *waiting ? n : *waiting;
    bool ends = budget->rate.batches && !(n == most && (long long)left > n);
    if (n > 0 || (ends && budget->used > 0))
        tl_budget_spend(budget, (uint64_t)n, ends, world->time_ms);
    *waiting -= n;

    test_rate_step(world, most);
    assert_int_equal(world->admitted, n);
    if (n > 0) { /* else the store does not keep what has lapsed */
        char text[200], expected[80];
        test_rate_budget(world, text);
        snprintf(expected, sizeof(expected),
                 "%" PRId64 ":%" PRId64 ":%" PRId64 ":%lld:", budget->from_ms, budget->used,
                 budget->late_ms, world->time_ms);
        text[strlen(expected)] = '\0';
        assert_string_equal(text, expected);
    }
    /* What the next period allows already is for the next step. */
    long long now_left = (long long)tl_budget_left(budget, world->time_ms);
    assert_int_equal(world->left, now_left < (long long)left - n ? now_left : (long long)left - n);
    int64_t due_ms = tl_budget_due_ms(budget);
    assert_int_equal(world->again_ms, due_ms > world->time_ms ? due_ms - world->time_ms : 0);
}

static void any_history(void **state)
{
    test_store_clean(state);
    struct world *world = test_rate_new(*state, "lanes=only");
    struct rule rule = any_rate();
    long long waiting = 0;
    struct tl_budget budget;
    test_rate_rule(world, "rate", &rule);
    tl_budget_begin(&budget,
                    &(struct tl_rate){.admit = (uint64_t)rule.admit,
                                      .every_ms = rule.every,
                                      .burst = (uint64_t)rule.burst,
                                      .batches = rule.batches},
                    world->time_ms);
    for (int i = 0; i < STEPS; i++) {
        if (below(4) == 0) {
            long long n = 1 + below(below(2) == 0 ? 3 : 2 * rule.admit);
            test_rate_join(world, n);
            waiting += n;
        }
        step(world, &budget, &waiting, below(3) == 0 ? 1 + below(30) : MOST);
        bool waits = world->again_ms > 0 && below(4) > 0;
        world->time_ms += waits ? world->again_ms : below(below(5) == 0 ? 3 * rule.every : 50);
        world->time_ms += below(3) == 0 ? below(30) : 0; /* late */
    }
    test_rate_free(&world);
}

static void both_allow_the_same(void **state)
{
    random_state = random_seed("both_allow_the_same");
    for (int i = 0; i < HISTORIES; i++)
        any_history(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(both_allow_the_same, test_store_clean),
    };
    return cmocka_run_group_tests(tests, test_store_open, test_store_close);
}
