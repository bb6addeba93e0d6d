/* SPDX-License-Identifier: Apache-2.0 */
/* The figures that the wait estimate is to reach, by simulation on fixed seeds: nothing here
 * depends on the clock. bench/eta prints more of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "bench/eta/judge.h"
#include "bench/eta/scenarios.h"

/* One seed draws other services for each quarter of the bank, which takes as long as all the rest.
 */
enum { SEEDS = 4, SEEDS_OF_THE_BANK = 1 };

static struct bank data;

/* In each class: eight in ten, give or take, and better than the baselines. near: how much worse
 * than the best baseline it may be on so few seeds. */
static void expect(const char *name, const struct outcome *outcome, double near)
{
    for (unsigned band = 0; band < POSITION_CLASSES; band++) {
        struct score ours = judge(outcome, band, OURS, false, 10000);
        printf("%s, %s: %zu told, median error %.1f %%, inside %.1f %%, pinball %.2f s\n", name,
               judge_classes[band], ours.n, ours.error * 100, ours.inside * 100, ours.pinball);
        assert_true(ours.n > 100);
        assert_true(ours.inside > 0.75 && ours.inside < 0.85);
        for (unsigned way = CONSTANT; way < WAYS; way++)
            assert_true(ours.pinball <
                        near * judge(outcome, band, (enum way)way, false, 10000).pinball);
        assert_true(band < POSITION_CLASSES - 1 || ours.error < 0.15);
    }
    assert_true(outcome->unnamed * 100 < outcome->views); /* no rise without a reason */
}

static void test_the_bank(void **state)
{
    (void)state;
    struct outcome outcome = {0};
    for (uint64_t seed = 1; seed <= SEEDS_OF_THE_BANK; seed++)
        for (unsigned fold = 0; fold < FOLDS; fold++)
            scenario_bank(&data, fold, seed, &outcome);
    expect("bank", &outcome, 1.02);
    outcome_free(&outcome);
}

static void test_an_opening(void **state)
{
    (void)state;
    struct outcome outcome = {0};
    for (uint64_t seed = 1; seed <= SEEDS; seed++)
        scenario_crowd(&data, seed, &outcome);
    expect("opening", &outcome, 1.0);
    outcome_free(&outcome);
}

/* From 10 s after each change of the capacity the range holds again, at all positions together. */
static void test_capacity_changes(void **state)
{
    (void)state;
    struct outcome outcome = {0};
    double inside = 0, n = 0;
    for (uint64_t seed = 1; seed <= 2 * SEEDS; seed++)
        scenario_steps(seed, &outcome);
    for (unsigned band = 0; band < POSITION_CLASSES; band++) {
        struct score score = judge(&outcome, band, OURS, false, 10000);
        printf("20 -> 5 -> 20, %s: inside %.1f %% of %zu\n", judge_classes[band],
               score.inside * 100, score.n);
        inside += score.n > 0 ? score.inside * (double)score.n : 0;
        n += (double)score.n;
    }
    assert_true(n > 1000 && inside >= 0.8 * n);
    outcome_free(&outcome);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_bank),
        cmocka_unit_test(test_an_opening),
        cmocka_unit_test(test_capacity_changes),
    };
    if (!bank_read(&data, "tests/data/bank-1999-12a.csv"))
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
