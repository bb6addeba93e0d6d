/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/queue/admissions.h"

/* Empties the steps between the newest and now. */
static void pass(struct tl_admissions *admissions, int64_t now_ms)
{
    int64_t step = now_ms / TL_ADMISSIONS_STEP_MS;
    if (step - admissions->step > TL_ADMISSIONS_STEPS)
        admissions->step = step - TL_ADMISSIONS_STEPS;
    while (admissions->step < step) {
        admissions->step++;
        admissions->counts[admissions->step % TL_ADMISSIONS_STEPS] = 0;
    }
}

void tl_admissions_begin(struct tl_admissions *admissions, int64_t now_ms)
{
    *admissions =
        (struct tl_admissions){.since_ms = now_ms, .step = now_ms / TL_ADMISSIONS_STEP_MS};
}

void tl_admissions_apply(struct tl_admissions *admissions, const struct tl_event_entry *entry,
                         int64_t now_ms)
{
    pass(admissions, now_ms);
    for (size_t i = 0; i < entry->n_events; i++) {
        const struct tl_event *event = &entry->events[i];
        for (size_t r = 0; event->kind == TL_EVENT_ADMITTED && r < event->places.n; r++)
            admissions->counts[admissions->step % TL_ADMISSIONS_STEPS] +=
                event->places.runs[r].count;
    }
}

bool tl_admissions_minute(const struct tl_admissions *admissions, int64_t now_ms, uint64_t *count)
{
    int64_t minute_ms = (TL_ADMISSIONS_STEPS - 1) * TL_ADMISSIONS_STEP_MS;
    struct tl_admissions now = *admissions;
    *count = 0;
    pass(&now, now_ms);
    for (unsigned i = 0; i < TL_ADMISSIONS_STEPS; i++)
        *count += now.counts[i];
    return now.since_ms > 0 && now_ms - now.since_ms >= minute_ms;
}
