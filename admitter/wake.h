/* Which events give the admitter a reason to try again. */
#ifndef TL_WAKE_H
#define TL_WAKE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/wire/events.h"

/* True when visitors may be admitted after this entry: a session ended while visitors wait, a
 * visitor joined while capacity is left, or the settings changed. *capacity_left (as the last admit
 * step returned it) grows with each session that ended, so that the next visitor to join is a
 * reason too. */
bool tl_wake_reason(const struct tl_event_entry *entry, uint64_t *capacity_left);

#endif
