/* SPDX-License-Identifier: Apache-2.0 */
#include "admitter/wake.h"

bool tl_wake_reason(struct tl_wake *wake, const struct tl_event_entry *entry)
{
    bool is_new = wake->generation != 0 && wake->generation != entry->generation;
    wake->generation = entry->generation;
    if (is_new)
        return true;
    for (size_t i = 0; i < entry->n_events; i++) {
        enum tl_event_kind kind = entry->events[i].kind;
        if (kind == TL_EVENT_FREED)
            wake->capacity_left++; /* at least; the next step returns the exact number */
        if (kind == TL_EVENT_CONFIG)
            return true;
        if (kind == TL_EVENT_FREED && wake->overbooked) /* a visitor may have the next turn */
            return true;
        if (!wake->not_yet && ((kind == TL_EVENT_FREED && entry->waiting > 0) ||
                               (kind == TL_EVENT_JOINED && wake->capacity_left > 0)))
            return true;
    }
    return false;
}
