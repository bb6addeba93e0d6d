/* SPDX-License-Identifier: Apache-2.0 */
/* Backtests the wait estimate: eta_bench [SEEDS [FIRST]] prints, for each scenario and class of
 * position, how good what was told is, beside the baselines. eta_bench --cost prints what it costs.
 * See docs/contributors/estimate.md. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/eta/cost.h"
#include "bench/eta/judge.h"
#include "bench/eta/scenarios.h"

static const char *const ways[WAYS] = {"this estimate", "ceil(p/M)*N", "weighted rate",
                                       "Little's law"};

static void print(const char *title, const struct outcome *outcome, bool all, int64_t settle_ms)
{
    printf("\n%s\n%-8s%-16s%10s%10s%10s%10s%12s%12s\n", title, "position", "", "promises", "error",
           "inside", "early", "pinball s", "width s");
    for (unsigned band = 0; band < POSITION_CLASSES; band++) {
        for (unsigned way = 0; way < WAYS; way++) {
            struct score score = judge(outcome, band, (enum way)way, all, settle_ms);
            printf("%-8s%-16s%10zu%9.1f%%%9.1f%%%9.1f%%%12.2f%12.1f\n",
                   way == 0 ? judge_classes[band] : "", ways[way], score.n, score.error * 100,
                   score.inside * 100, score.early * 100, score.pinball, score.width_s);
        }
    }
    printf("views %zu, without an estimate %.1f %%; estimates that rose %zu, of these without a "
           "reason %zu (%.2f %% of views)\n",
           outcome->views, 100.0 * (double)outcome->unknown / (double)outcome->views,
           outcome->rises, outcome->unnamed,
           100.0 * (double)outcome->unnamed / (double)outcome->views);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--cost") == 0) {
        for (unsigned capacity = 20; capacity <= 20000; capacity *= 10)
            cost_print(capacity);
        return 0;
    }
    unsigned long seeds = argc > 1 ? strtoul(argv[1], NULL, 10) : 20;
    unsigned long first = argc > 2 ? strtoul(argv[2], NULL, 10) : 1;
    struct outcome bank = {0}, crowd = {0}, steps = {0};
    static struct bank data;
    if (!bank_read(&data, "tests/data/bank-1999-12a.csv")) {
        fprintf(stderr, "run it at the top of the source tree\n");
        return 1;
    }
    for (unsigned long seed = first; seed < first + seeds; seed++) {
        for (unsigned fold = 0; fold < FOLDS; fold++)
            scenario_bank(&data, fold, seed, &bank);
        scenario_crowd(&data, seed, &crowd);
        scenario_steps(seed, &steps);
    }
    print("the bank", &bank, false, 0);
    print("openings", &crowd, false, 0);
    print("openings, with what a pause overtook", &crowd, true, 0);
    print("20 -> 5 -> 20, from 10 s after each change", &steps, false, 10000);
    print("20 -> 5 -> 20, with what a change overtook", &steps, true, 10000);
    outcome_free(&bank);
    outcome_free(&crowd);
    outcome_free(&steps);
    return 0;
}
