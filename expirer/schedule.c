/* SPDX-License-Identifier: Apache-2.0 */
#include "expirer/schedule.h"

void tl_schedule_note(struct tl_schedule *schedule, const struct tl_event_entry *entry)
{
    for (size_t i = 0; i < entry->n_events; i++) {
        const struct tl_event *event = &entry->events[i];
        if ((event->kind == TL_EVENT_ADMITTED || event->kind == TL_EVENT_RENEWED) &&
            (schedule->deadline_ms == 0 || event->deadline_ms < schedule->deadline_ms))
            schedule->deadline_ms = event->deadline_ms;
    }
}

int64_t tl_schedule_deadline(const struct tl_schedule *schedule)
{
    return schedule->deadline_ms != 0 ? schedule->deadline_ms - schedule->offset_ms : INT64_MAX;
}

bool tl_schedule_is_due(const struct tl_schedule *schedule, int64_t now_ms)
{
    return now_ms >= schedule->check_ms || now_ms >= tl_schedule_deadline(schedule);
}
