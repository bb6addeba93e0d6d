/* SPDX-License-Identifier: Apache-2.0 */
/* Exponential back-off with full jitter (M. Brooker, "Exponential Backoff And Jitter", 2015): the
 * wait is drawn evenly from [base/2, current], and current doubles up to the limit with every
 * failure in a row. */
#ifndef TL_BACKOFF_H
#define TL_BACKOFF_H

#include <stdint.h>

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
