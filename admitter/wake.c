#include "admitter/wake.h"

bool tl_wake_reason(const struct tl_event_entry *entry, uint64_t *capacity_left)
{
    for (size_t i = 0; i < entry->n_events; i++) {
        enum tl_event_kind kind = entry->events[i].kind;
        if (kind == TL_EVENT_FREED)
            (*capacity_left)++; /* at least; the next step returns the exact number */
        if (kind == TL_EVENT_CONFIG || (kind == TL_EVENT_FREED && entry->waiting > 0) ||
            (kind == TL_EVENT_JOINED && *capacity_left > 0))
            return true;
    }
    return false;
}
