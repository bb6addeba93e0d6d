/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The policies `rate` and `both` of the admit function. Its clock is a key that the test sets, so
 * that time passes, jumps and stands still as the test says.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/units.h"
#include "rate_world.h"
#include "tests/unit/random.h"

enum { JUMP_MS = 100 }; /* a jump of the clock that the function must notice is longer */

#define HOUR_MS INT64_C(3600000)

/* ---- smooth ---- */

static void a_smooth_rate_spreads_admissions(void **state)
{
    struct world *world = test_rate_new(*state, "lanes=only");
    test_rate_rule(world, "rate", &(struct rule){.admit = 10, .every = 1000});
    test_rate_join(world, 500);
    test_rate_admit(world); /* the budget begins spent */
    assert_int_equal(world->n_steps, 0);
    assert_true(world->again_ms > 0);
    world->time_ms += world->again_ms - 1;
    assert_int_equal(test_rate_admit(world), 0);
    world->time_ms += 1;
    for (int i = 0; i < 50; i++) {
        assert_int_equal(test_rate_admit(world), 1);
        assert_int_equal(world->again_ms, 100);
        assert_int_equal(world->left, 0);
        world->time_ms += 100;
    }
    test_rate_windows(world);
    test_rate_free(&world);
}

/* Runs for `periods` periods; each step is up to `late` ms late. Returns how many were admitted. */
static long long run(struct world *world, long long periods, long long every, uint64_t late,
                     uint64_t *random)
{
    long long n = 0, end = world->time_ms + periods * every;
    while (world->time_ms < end) {
        n += test_rate_admit(world);
        world->time_ms += world->again_ms > 0 ? world->again_ms : 1;
        world->time_ms += late > 0 ? (long long)random_below(random, late + 1) : 0;
    }
    return n;
}

/* Over a long run a full line is admitted at the whole rate, whatever the numbers divide by. A late
 * step costs its delay once in a period; with a burst that covers the delay, nothing. */
static void nothing_of_the_rate_is_lost(void **state)
{
    static const struct {
        struct rule rule;
        uint64_t late;
        long long of_1000; /* of the whole rate */
    } cases[] = {
        {{.admit = 7, .every = 300}, 0, 1000},
        {{.admit = 1, .every = 101}, 0, 1000},
        {{.admit = 333, .every = 1000}, 0, 1000},
        {{.admit = 140, .every = 1000}, 0, 1000},
        {{.admit = 500, .every = 100}, 0, 1000},
        {{.admit = 50, .every = 500, .batches = true}, 0, 1000},
        {{.admit = 140, .every = 1000}, 3, 1000 * 1000 / 1003},
        {{.admit = 100, .every = 1000}, 9, 1000 * 1000 / 1009},
        {{.admit = 100, .every = 1000, .burst = 2}, 9, 1000},
        {{.admit = 50, .every = 500, .batches = true}, 3, 1000 * 500 / 503},
    };
    uint64_t random = random_seed("nothing_of_the_rate_is_lost");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        enum { PERIODS = 7 };
        test_store_clean(state);
        const struct rule *rule = &cases[i].rule;
        struct world *world = test_rate_new(*state, "lanes=only");
        test_rate_rule(world, rule->batches ? "rate" : "both", rule);
        test_rate_set(world, "capacity", "10000000");
        test_rate_join(world, rule->admit * (PERIODS + 2));
        long long n = run(world, PERIODS, rule->every, cases[i].late, &random);
        test_rate_windows(world);
        test_rate_lumps(world);
        long long whole = rule->admit * PERIODS * cases[i].of_1000 / 1000;
        if (n < whole - rule->admit)
            fail_msg("case %zu: %lld were admitted in %d periods of %lld", i, n, PERIODS,
                     rule->admit);
        test_rate_free(&world);
    }
}

static void an_unused_rate_adds_up_to_the_burst_only(void **state)
{
    struct world *world = test_rate_new(*state, "lanes=only");
    test_rate_rule(world, "rate", &(struct rule){.admit = 10, .every = 10000, .burst = 4});
    test_rate_admit(world);
    world->time_ms += HOUR_MS;
    test_rate_join(world, 100);
    assert_int_equal(test_rate_admit(world), 5); /* the next one, and the burst */
    assert_in_range(world->again_ms, 1, 1000);
    for (int i = 0; i < 30; i++) {
        world->time_ms += world->again_ms;
        assert_int_equal(test_rate_admit(world), 1);
    }
    test_rate_windows(world);
    test_rate_free(&world);
}

/* ---- batches ---- */

static void lumps_are_whole_and_apart(void **state)
{
    struct world *world = test_rate_new(*state, "lanes=only");
    test_rate_rule(world, "rate", &(struct rule){.admit = 100, .every = 1000, .batches = true});
    test_rate_join(world, 1000);
    assert_int_equal(test_rate_admit(world), 0); /* begins spent */
    assert_int_equal(world->again_ms, 1000);
    world->time_ms += 1000;
    assert_int_equal(test_rate_admit(world), 100);
    world->time_ms += 999;
    assert_int_equal(test_rate_admit(world), 0);
    assert_int_equal(world->again_ms, 1);
    world->time_ms += 301; /* late; the next one keeps its distance */
    assert_int_equal(test_rate_admit(world), 100);
    assert_int_equal(world->again_ms, 1000);
    world->time_ms += 700;
    assert_int_equal(test_rate_admit(world), 0);
    world->time_ms += 300;
    assert_int_equal(test_rate_admit(world), 100);
    test_rate_windows(world);
    test_rate_lumps(world);
    test_rate_free(&world);
}

/* Bounded steps: the distance counts from the last one. */
static void a_lump_takes_several_steps(void **state)
{
    struct world *world = test_rate_new(*state, "lanes=only");
    test_rate_rule(world, "rate", &(struct rule){.admit = 100, .every = 1000, .batches = true});
    test_rate_join(world, 1000);
    test_rate_admit(world);
    world->time_ms += 1000;
    for (int i = 0; i < 3; i++) {
        test_rate_step(world, 30);
        assert_int_equal(world->admitted, 30);
        assert_true(world->left > 0);
        world->time_ms += 50; /* another admitter takes over, for instance */
    }
    test_rate_step(world, 30);
    assert_int_equal(world->admitted, 10);
    assert_int_equal(world->again_ms, 1000);
    world->time_ms += 999;
    assert_int_equal(test_rate_admit(world), 0);
    world->time_ms += 1;
    assert_int_equal(test_rate_admit(world), 100);
    test_rate_windows(world);
    test_rate_lumps(world);
    test_rate_free(&world);
}

/* A step that is full, and then no visitor waits: the batch is over for those who come later. */
static void what_a_lump_leaves_over_lapses(void **state)
{
    struct world *world = test_rate_new(*state, "lanes=only");
    test_rate_rule(world, "rate", &(struct rule){.admit = 100, .every = 1000, .batches = true});
    test_rate_admit(world);
    world->time_ms += 1000;
    test_rate_join(world, 30);
    test_rate_step(world, 30);
    assert_int_equal(world->admitted, 30);
    test_rate_step(world, 30);
    assert_int_equal(world->left, 0);
    world->time_ms += 10;
    test_rate_join(world, 50);
    assert_int_equal(test_rate_admit(world), 0);
    assert_int_equal(world->again_ms, 990);
    world->time_ms += 990;
    assert_int_equal(test_rate_admit(world), 50);
    assert_int_equal(world->left, 0);
    test_rate_lumps(world);
    test_rate_free(&world);
}

/* ---- policies ---- */

static void by_rate_sessions_do_not_limit(void **state)
{
    struct world *world = test_rate_new(*state, "lanes=only capacity=0");
    test_rate_rule(world, "rate", &(struct rule){.admit = 100, .every = 1000, .batches = true});
    test_rate_join(world, 1000);
    test_rate_admit(world);
    for (int i = 1; i <= 3; i++) {
        world->time_ms += 1000;
        assert_int_equal(test_rate_admit(world), 100);
        assert_int_equal(test_state(world->store, "active"), 100 * i);
        assert_int_equal(test_state(world->store, "admit_capacity"), 100 * i);
    }
    test_rate_free(&world);
}

static void both_takes_the_smaller(void **state)
{
    struct world *world = test_rate_new(*state, "lanes=only capacity=130");
    test_rate_rule(world, "both", &(struct rule){.admit = 100, .every = 1000, .batches = true});
    test_rate_join(world, 1000);
    test_rate_admit(world);
    world->time_ms += 1000;
    assert_int_equal(test_rate_admit(world), 100);
    world->time_ms += 1000;
    assert_int_equal(test_rate_admit(world), 30);
    test_rate_end_sessions(world, 60);
    assert_int_equal(test_rate_admit(world), 0); /* the batch is over */
    world->time_ms += 1000;
    assert_int_equal(test_rate_admit(world), 60);
    world->time_ms += 1000;
    assert_int_equal(test_rate_admit(world), 0);
    assert_int_equal(world->again_ms, 0); /* not the rate: an ended session is the reason to call */
    test_rate_free(&world);
}

static void a_policy_by_rate_needs_a_rate(void **state)
{
    struct world *world = test_rate_new(*state, "lanes=only capacity=4");
    char error[320];
    test_rate_join(world, 3);
    test_redis_ask(world->store->redis, "HSET tl:{q}:config policy rate");
    uint64_t before = test_redis_fingerprint(world->store->redis);
    assert_null(
        test_function(world->store->redis, TL_FN_ADMIT, &world->store->keys, "10 100", error));
    assert_non_null(strstr(error, "POLICY the queue has no rate"));
    assert_int_equal(test_redis_fingerprint(world->store->redis), before);
    test_rate_free(&world);
}

/* Before the queue opens the budget is made: the first batch is at the opening. */
static void the_first_lump_is_at_the_opening(void **state)
{
    struct world *world = test_rate_new(*state, "lanes=only");
    char opens_at[TL_UNITS_TEXT_MAX];
    test_rate_rule(world, "rate", &(struct rule){.admit = 100, .every = 1000, .batches = true});
    tl_time_format(world->time_ms + 5000, opens_at, sizeof(opens_at));
    test_rate_set(world, "opens_at", opens_at);
    test_rate_join(world, 500);
    assert_int_equal(test_rate_admit(world), 0);
    assert_int_equal(world->again_ms, 5000);
    world->time_ms += 5000;
    assert_int_equal(test_rate_admit(world), 100);
    test_rate_free(&world);
}

/* ---- what must grant nothing ---- */

static void from_counter_to_rate_the_budget_is_spent(void **state)
{
    struct world *world = test_rate_new(*state, "lanes=only capacity=1000");
    const struct rule rule = {.admit = 100, .every = 1000, .batches = true};
    char text[200];
    test_rate_rule(world, "rate", &rule);
    test_rate_join(world, 1000);
    test_rate_admit(world);
    world->time_ms += 1000;
    assert_int_equal(test_rate_admit(world), 100);
    world->time_ms += 900;
    test_rate_rule(world, "counter", &rule);
    test_rate_step(world, 200);
    assert_int_equal(world->admitted, 200); /* the budget does not know */
    test_rate_budget(world, text);
    assert_string_equal(text, "");
    test_rate_rule(world, "rate", &rule);
    world->time_ms += 100;
    assert_int_equal(test_rate_admit(world), 0);
    assert_int_equal(world->again_ms, 1000);
    test_rate_free(&world);
}

static void a_store_that_forgot_counts_as_spent(void **state)
{
    struct world *world = test_rate_new(*state, "lanes=only");
    char before[200];
    test_rate_rule(world, "rate", &(struct rule){.admit = 100, .every = 1000, .batches = true});
    test_rate_join(world, 1000);
    test_rate_admit(world);
    world->time_ms += 1000;
    test_rate_budget(world, before);
    assert_int_equal(test_rate_admit(world), 100);
    test_rate_forget(world, before); /* without the batch */
    assert_int_equal(test_rate_admit(world), 0);
    assert_int_equal(world->again_ms, 1000);
    world->time_ms += 1000;
    assert_int_equal(test_rate_admit(world), 100);
    test_redis_ask(world->store->redis, "HSET tl:{q}:state budget damaged");
    assert_int_equal(test_rate_admit(world), 0);
    assert_int_equal(world->again_ms, 1000);
    test_rate_free(&world);
}

static void a_clock_that_jumps_grants_nothing(void **state)
{
    struct world *world = test_rate_new(*state, "lanes=only");
    test_rate_rule(world, "rate", &(struct rule){.admit = 100, .every = 1000, .batches = true});
    test_rate_join(world, 1000);
    test_rate_admit(world);
    world->time_ms += 1000;
    assert_int_equal(test_rate_admit(world), 100);
    world->time_ms += 400;
    world->ahead_ms += HOUR_MS;
    assert_int_equal(test_rate_admit(world), 0);
    assert_int_equal(world->again_ms, 600);
    world->time_ms += 600;
    assert_int_equal(test_rate_admit(world), 100);
    world->time_ms += 400;
    world->ahead_ms -= 2 * HOUR_MS;
    assert_int_equal(test_rate_admit(world), 0); /* the 400 ms are lost, and nothing else */
    assert_int_equal(world->again_ms, 1000);
    world->time_ms += 1000;
    assert_int_equal(test_rate_admit(world), 100);
    test_rate_lumps(world);
    test_rate_free(&world);
}

/* The jump ends the leases, so the one in reserve takes the next step: it may have looked at the
 * clock meanwhile, and the other one may have taken a step, or not. */
static void a_jump_grants_nothing_to_an_admitter_that_takes_over(void **state)
{
    for (int way = 0; way < 8; way++) {
        test_store_clean(state);
        struct world *world = test_rate_new(*state, "lanes=only");
        test_rate_rule(world, "rate", &(struct rule){.admit = 100, .every = 1000, .batches = true});
        test_rate_join(world, 1000);
        test_rate_admit(world);
        world->time_ms += 1000;
        assert_int_equal(test_rate_admit(world), 100);
        world->time_ms += 400;
        world->ahead_ms += HOUR_MS;
        if ((way & 1) != 0)
            test_rate_look(world);
        if ((way & 2) != 0)
            assert_int_equal(test_rate_admit(world), 0);
        test_rate_take_over(world);
        assert_int_equal(test_rate_admit(world), 0);
        assert_in_range(world->again_ms, 600, 1000); /* the 400 ms may be lost, and nothing else */
        world->time_ms += world->again_ms;
        if ((way & 4) != 0) /* back to the first, which knows of the jump, too */
            test_rate_take_over(world);
        (void)test_rate_admit(world);
        world->time_ms += world->again_ms;
        (void)test_rate_admit(world);
        assert_true(world->n_steps >= 2);
        test_rate_lumps(world);
        test_rate_free(&world);
    }
}

/* ---- changes ---- */

static void a_change_carries_the_rest_over(void **state)
{
    struct world *world = test_rate_new(*state, "lanes=only");
    test_rate_rule(world, "rate", &(struct rule){.admit = 10, .every = 1000});
    test_rate_join(world, 5000);
    test_rate_admit(world);
    world->time_ms += 1000;
    uint64_t unused = 0;
    run(world, 3, 1000, 0, &unused);
    test_rate_rule(world, "rate", &(struct rule){.admit = 100, .every = 1000});
    assert_int_equal(run(world, 1, 1000, 0, &unused) > 70, true); /* from the next slot on */
    test_rate_rule(world, "rate", &(struct rule){.admit = 10, .every = 1000});
    assert_in_range(run(world, 1, 1000, 0, &unused), 8, 11); /* the pace changes at once */
    test_rate_rule(world, "rate", &(struct rule){.admit = 1, .every = 24 * HOUR_MS});
    run(world, 1, 1000, 0, &unused);
    test_rate_rule(world, "rate", &(struct rule){.admit = 100, .every = 1000});
    assert_true(run(world, 2, 1000, 0, &unused) >= 100); /* not the rest of the day */
    test_rate_rule(world, "rate", &(struct rule){.admit = 50, .every = 1000, .batches = true});
    run(world, 4, 1000, 0, &unused);
    test_rate_rule(world, "rate", &(struct rule){.admit = 70, .every = 300, .batches = true});
    run(world, 4, 1000, 0, &unused);
    test_rate_windows(world);
    test_rate_lumps(world);
    test_rate_free(&world);
}

static struct rule any_rule(uint64_t *random)
{
    struct rule rule = {.admit = 1 + (long long)random_below(random, 60),
                        .every = 100 + (long long)random_below(random, 2000),
                        .burst = (long long)random_below(random, 12),
                        .batches = random_below(random, 3) == 0};
    if (random_below(random, 2) == 0 || rule.batches)
        rule.burst = 0;
    if (random_below(random, 8) == 0)
        rule.admit *= 50;
    return rule;
}

/* One thing that may happen beside admissions. */
static void happen(struct world *world, uint64_t *random, char kept[200])
{
    struct rule rule;
    test_rate_look(world); /* it does so more often than the clock jumps */
    switch (random_below(random, 12)) {
    case 0: /* hours without a visitor */
        test_rate_empty_line(world);
        test_rate_admit(world);
        world->time_ms += (long long)random_below(random, 20000);
        break;
    case 1: /* the clock jumps, forward or back */
        world->ahead_ms += (random_below(random, 2) == 0 ? 1 : -1) *
                           (JUMP_MS + 1 + (long long)random_below(random, 5000));
        break;
    case 2: /* the other admitter takes over, at a jump as it may be */
        if (random_below(random, 2) == 0)
            world->ahead_ms += JUMP_MS + 1 + (long long)random_below(random, 5000);
        if (random_below(random, 2) == 0)
            test_rate_look(world);
        test_rate_take_over(world);
        break;
    case 3: /* the store comes back without its last second */
        test_rate_forget(world, kept[0] != '\0' ? kept : NULL);
        break;
    case 4:
        test_rate_budget(world, kept);
        break;
    case 5:
        rule = any_rule(random);
        test_rate_rule(world, random_below(random, 2) == 0 ? "rate" : "both", &rule);
        break;
    case 6: /* an admitter that stops for a while */
        world->time_ms += (long long)random_below(random, 3000);
        break;
    default:
        test_rate_end_sessions(world, (long long)random_below(random, 40));
        test_rate_join(world, (long long)random_below(random, 200));
    }
}

/* A history that these random numbers tell. */
static void any_history(void **state, uint64_t *random)
{
    char kept[200] = "";
    test_store_clean(state);
    struct world *world = test_rate_new(*state, "lanes=only capacity=60");
    struct rule rule = any_rule(random);
    test_rate_rule(world, random_below(random, 2) == 0 ? "rate" : "both", &rule);
    bool is_late = random_below(random, 2) == 0;
    for (int i = 0; i < 150; i++) {
        test_rate_step(world, random_below(random, 3) == 0 ? 1 + (long long)random_below(random, 30)
                                                           : MOST);
        if (world->admitted == 0 || world->left == 0)
            world->time_ms += world->again_ms > 0 && random_below(random, 4) > 0
                                  ? world->again_ms
                                  : (long long)random_below(random, 50);
        if (is_late)
            world->time_ms += (long long)random_below(random, 30);
        if (random_below(random, 6) == 0)
            happen(world, random, kept);
    }
    test_rate_windows(world);
    test_rate_lumps(world);
    test_rate_free(&world);
}

/* Whatever happens, no window holds more than the rate allows, and batches keep their distance. */
static void random_histories_keep_the_rate(void **state)
{
    uint64_t random = random_seed("random_histories_keep_the_rate");
    for (int round = 0; round < 25; round++)
        any_history(state, &random);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_smooth_rate_spreads_admissions, test_store_clean),
        cmocka_unit_test_setup(nothing_of_the_rate_is_lost, test_store_clean),
        cmocka_unit_test_setup(an_unused_rate_adds_up_to_the_burst_only, test_store_clean),
        cmocka_unit_test_setup(lumps_are_whole_and_apart, test_store_clean),
        cmocka_unit_test_setup(a_lump_takes_several_steps, test_store_clean),
        cmocka_unit_test_setup(what_a_lump_leaves_over_lapses, test_store_clean),
        cmocka_unit_test_setup(by_rate_sessions_do_not_limit, test_store_clean),
        cmocka_unit_test_setup(both_takes_the_smaller, test_store_clean),
        cmocka_unit_test_setup(a_policy_by_rate_needs_a_rate, test_store_clean),
        cmocka_unit_test_setup(the_first_lump_is_at_the_opening, test_store_clean),
        cmocka_unit_test_setup(from_counter_to_rate_the_budget_is_spent, test_store_clean),
        cmocka_unit_test_setup(a_store_that_forgot_counts_as_spent, test_store_clean),
        cmocka_unit_test_setup(a_clock_that_jumps_grants_nothing, test_store_clean),
        cmocka_unit_test_setup(a_jump_grants_nothing_to_an_admitter_that_takes_over,
                               test_store_clean),
        cmocka_unit_test_setup(a_change_carries_the_rest_over, test_store_clean),
        cmocka_unit_test_setup(random_histories_keep_the_rate, test_store_clean),
    };
    return cmocka_run_group_tests(tests, test_store_open, test_store_close);
}
