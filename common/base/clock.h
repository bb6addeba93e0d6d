/* SPDX-License-Identifier: Apache-2.0 */
/* Local monotonic time. Deadlines that processes share are on the Redis server's clock, never on
 * this one. */
#ifndef TL_CLOCK_H
#define TL_CLOCK_H

#include <stdint.h>

/* Monotonic milliseconds since an arbitrary start. */
int64_t tl_clock_ms(void);

/* Monotonic microseconds since the same start. */
int64_t tl_clock_us(void);

/* Unix time in milliseconds by this machine's clock, which may be wrong or jump: for what people
 * read and for how long a browser may stay signed in. */
int64_t tl_clock_wall_ms(void);

#endif
