/* SPDX-License-Identifier: Apache-2.0 */
/* Scores of what was told, by class of position. */
#ifndef TL_BENCH_JUDGE_H
#define TL_BENCH_JUDGE_H

#include "bench/eta/crowd.h"

enum { POSITION_CLASSES = 4 };

struct score {
    size_t n;
    double error;   /* median of |median - truth| / truth */
    double inside;  /* share of truths within the range */
    double early;   /* share of truths before it */
    double pinball; /* mean loss at .1, .5 and .9, in seconds */
    double width_s; /* median of high - low */
};

/* The position class is one of 1-4, 5-19, 20-49, 50 and more: 0 to 3. */
extern const char *const judge_classes[POSITION_CLASSES];

/* Promises overtaken by an operator's change are left out unless `all`, and so are those told less
 * than settle_ms after one. */
struct score judge(const struct outcome *outcome, unsigned band, enum way way, bool all,
                   int64_t settle_ms);

#endif
