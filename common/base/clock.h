/* SPDX-License-Identifier: Apache-2.0 */
/* Local time, and how long to wait before the next try. Deadlines that processes share are on the
 * Redis server's clock, never on this one. */
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

/* Exponential back-off with full jitter (M. Brooker, "Exponential Backoff And Jitter", 2015): the
 * wait is drawn evenly from [base/2, current], and current doubles up to the limit with every
 * failure in a row. */
struct tl_backoff {
    int64_t base_ms;
    int64_t limit_ms;
    int64_t current_ms; /* 0: no failure yet */
};

void tl_backoff_init(struct tl_backoff *backoff, int64_t base_ms, int64_t limit_ms);
/* The wait before the next try, in ms; `random` is any uniformly random number. */
int64_t tl_backoff_next(struct tl_backoff *backoff, uint32_t random);
/* After a success. */
void tl_backoff_reset(struct tl_backoff *backoff);

#endif
