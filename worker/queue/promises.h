/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What visitors were told about their wait, against what came true: for a bounded sample of those
 * who wait, eight in each class of position (1 to 4, 5 to 19, 20 to 49, 50 and more). The result is
 * the published error of the running queue. The same sample notices when an estimate grows, and
 * why.
 *
 * now_ms is local monotonic time everywhere.
 */
#ifndef TL_PROMISES_H
#define TL_PROMISES_H

#include <stdint.h>

#include "common/line/line.h"
#include "worker/queue/eta.h"

struct tl_promises;

/* seed: chooses who is sampled. NULL when out of memory. */
struct tl_promises *tl_promises_new(uint64_t seed);
void tl_promises_free(struct tl_promises **promises);
/* Forgets what was told: the line is another one. */
void tl_promises_drop(struct tl_promises *promises);

/* An entry of the events stream that the line and the estimate have just taken: some of those who
 * were told may have been admitted. */
void tl_promises_apply(struct tl_promises *promises, const struct tl_line *line,
                       const struct tl_event_entry *entry, int64_t now_ms);
/* Samples more of those who wait, at most one of each class, and compares what the others would be
 * told now with what they were told. Once a second; calls in between do nothing. */
void tl_promises_tick(struct tl_promises *promises, struct tl_eta *eta, const struct tl_line *line,
                      int64_t now_ms);

/* Fading over the last hundred or so that came true. */
struct tl_promises_score {
    uint64_t judged; /* so many came true so far */
    double inside;   /* share within the range; fading */
    double error;    /* mean distance from the median over the wait; fading */
};

/* For counters: what came true since this reader last asked. */
enum tl_promises_reader { TL_PROMISES_METRICS, TL_PROMISES_STORE, TL_PROMISES_READERS };
struct tl_promises_news {
    uint64_t judged, early, late; /* all; before and after the range */
    uint64_t error_percent; /* distances from the median in percent of the wait, added up; each at
                               most 1,000 */
};
struct tl_promises_news tl_promises_news(struct tl_promises *promises,
                                         enum tl_promises_reader reader);
/* When the oldest of these came true; 0: there are none. */
int64_t tl_promises_news_since(const struct tl_promises *promises, enum tl_promises_reader reader);
struct tl_promises_score tl_promises_score(const struct tl_promises *promises);

#endif
