/* SPDX-License-Identifier: Apache-2.0 */
/* How many visitors of one queue were admitted during the last minute, as its events say: what a
 * page shows of the pace. In steps of 5 s, so the minute is one of 60 to 65 s. now_ms is local
 * monotonic time. */
#ifndef TL_ADMISSIONS_H
#define TL_ADMISSIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/wire/events.h"

enum { TL_ADMISSIONS_STEPS = 13, TL_ADMISSIONS_STEP_MS = 5000 };

struct tl_admissions {
    int64_t since_ms; /* every event since then was seen; 0: none yet */
    int64_t step;     /* the newest; counts[step % TL_ADMISSIONS_STEPS] is its count */
    uint64_t counts[TL_ADMISSIONS_STEPS];
};

/* The line was loaded, at first or after events were missed. */
void tl_admissions_begin(struct tl_admissions *admissions, int64_t now_ms);
void tl_admissions_apply(struct tl_admissions *admissions, const struct tl_event_entry *entry,
                         int64_t now_ms);
/* False: not all of a minute was seen. */
bool tl_admissions_minute(const struct tl_admissions *admissions, int64_t now_ms, uint64_t *count);

#endif
