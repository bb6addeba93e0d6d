/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When to rebuild a line after a new incarnation of the store. All workers find it in the same
 * moment, and each reads the whole line. The store takes up to 0.6 us for a visitor (measured: 0.58
 * s for a million with gaps between all of them, 4.4 ms for 10,000; 0.045 s for a million without
 * gaps). In lines from TL_STAGGER_SIZE visitors on, each worker therefore waits a random part of 5
 * us for each visitor, at most TL_STAGGER_MS: workers for whom that is enough take turns, and
 * others share the store with the commands of visitors.
 *
 * The bound: a line of 10,000 is never late, and a million listeners are told 5 seconds later at
 * most, of the minute in which they must be back in order. Meanwhile positions are those from
 * before.
 */
#ifndef TL_STAGGER_H
#define TL_STAGGER_H

#include <stdint.h>

#define TL_STAGGER_SIZE 20000 /* a smaller line costs the store about 10 ms */
#define TL_STAGGER_MS   5000  /* as long as a line of a million */

/* Returns when to rebuild a line of this size. random: any number. */
int64_t tl_stagger_until(int64_t now_ms, uint64_t size, uint32_t random);

#endif
