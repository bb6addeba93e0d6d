/* SPDX-License-Identifier: Apache-2.0 */
/* Which events give the admitter a reason to try again. */
#ifndef TL_WAKE_H
#define TL_WAKE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/wire/events.h"

/* What is known of a queue between two admit steps. */
struct tl_wake {
    uint64_t generation;    /* of the last entry; 0: none yet */
    uint64_t capacity_left; /* as the last step returned it; grows with each session that ended */
    bool overbooked;        /* who came when the capacity was claimed goes in when a session ends */
    bool not_yet; /* the last step said when to call again: no visitor is admitted before */
};

/* True when visitors may be admitted after this entry: a session ended while visitors wait, a
 * visitor joined while capacity is left, the settings changed, or the queue has a new generation,
 * of which nothing is known. While none may be admitted yet, only the last two count. */
bool tl_wake_reason(struct tl_wake *wake, const struct tl_event_entry *entry);

#endif
