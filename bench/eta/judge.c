/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>

#include "bench/eta/judge.h"

const char *const judge_classes[POSITION_CLASSES] = {"1-4", "5-19", "20-49", "50+"};
static const uint64_t class_from[POSITION_CLASSES + 1] = {1, 5, 20, 50, UINT64_MAX};

static int compare(const void *a, const void *b)
{
    const double *left = a, *right = b;
    return (*left > *right) - (*left < *right);
}

static double median(double *values, size_t n)
{
    qsort(values, n, sizeof(*values), compare);
    return n > 0 ? values[n / 2] : NAN;
}

static double pinball(double told, double truth, double quantile)
{
    return truth >= told ? (truth - told) * quantile : (told - truth) * (1 - quantile);
}

struct score judge(const struct outcome *outcome, unsigned band, enum way way, bool all,
                   int64_t settle_ms)
{
    struct score score = {0};
    double *errors = calloc(outcome->n + 1, sizeof(*errors));
    double *widths = calloc(outcome->n + 1, sizeof(*widths));
    if (errors == NULL || widths == NULL)
        abort();
    for (size_t i = 0; i < outcome->n; i++) {
        const struct promise *promise = &outcome->promises[i];
        const struct told *told = &promise->told[way];
        if (promise->position < class_from[band] || promise->position >= class_from[band + 1] ||
            (promise->overtaken && !all) || promise->since_change_ms < settle_ms)
            continue;
        double truth = promise->truth_s;
        errors[score.n] = fabs(told->median_s - truth) / fmax(truth, 0.001);
        widths[score.n] = told->high_s - told->low_s;
        score.n++;
        score.early += truth < told->low_s;
        score.inside += truth >= told->low_s && truth <= told->high_s;
        score.pinball += (pinball(told->low_s, truth, 0.1) + pinball(told->median_s, truth, 0.5) +
                          pinball(told->high_s, truth, 0.9)) /
                         3;
    }
    score.error = median(errors, score.n);
    score.width_s = median(widths, score.n);
    score.inside /= (double)score.n;
    score.early /= (double)score.n;
    score.pinball /= (double)score.n;
    free(errors);
    free(widths);
    return score;
}
