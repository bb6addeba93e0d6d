/* SPDX-License-Identifier: Apache-2.0 */
/* How joins share a worker when more come than the store takes. */
#ifndef TL_PRESS_H
#define TL_PRESS_H

#include <stdint.h>

/* What waits, and the bounds at which all joins are refused. */
struct tl_press {
    uint64_t pending, pending_max; /* commands */
    int64_t lag_ms, lag_max_ms;    /* for how long they have waited in the store */
    unsigned memory_percent;       /* of the store */
};

/*
 * How many joins a second one address may have now; 0: nothing presses, as many as it wants.
 * The share falls with the room that is left, long before the bounds: what comes in is then what
 * the store takes, in equal shares of those who want more, and who wants less notices nothing.
 */
uint64_t tl_press_share(const struct tl_press *press);

#endif
