/* SPDX-License-Identifier: Apache-2.0 */
/* When the sessions of one queue are due to be expired. Deadlines are times of the store's clock;
 * all other times are local and monotonic. */
#ifndef TL_SCHEDULE_H
#define TL_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/wire/events.h"

/* A zeroed schedule is due at once. */
struct tl_schedule {
    int64_t deadline_ms; /* the next deadline, by the store's clock; 0: none known */
    int64_t offset_ms;   /* the store's clock minus the local one */
    int64_t check_ms;    /* run the function expire then in any case */
};

/* Takes over the deadlines of an entry where they are earlier than the one known. */
void tl_schedule_note(struct tl_schedule *schedule, const struct tl_event_entry *entry);
/* The local time of the next deadline; INT64_MAX: none known. */
int64_t tl_schedule_deadline(const struct tl_schedule *schedule);
/* Has the deadline passed, or is it time for the check? */
bool tl_schedule_is_due(const struct tl_schedule *schedule, int64_t now_ms);

#endif
