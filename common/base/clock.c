/* SPDX-License-Identifier: Apache-2.0 */
#include <time.h>

#include "common/base/clock.h"

int64_t tl_clock_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

int64_t tl_clock_ms(void)
{
    return tl_clock_us() / 1000;
}

int64_t tl_clock_wall_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now); /* cannot fail */
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void tl_backoff_init(struct tl_backoff *backoff, int64_t base_ms, int64_t limit_ms)
{
    backoff->base_ms = base_ms;
    backoff->limit_ms = limit_ms;
    backoff->current_ms = 0;
}

int64_t tl_backoff_next(struct tl_backoff *backoff, uint32_t random)
{
    if (backoff->current_ms == 0)
        backoff->current_ms = backoff->base_ms;
    else if (backoff->current_ms < backoff->limit_ms)
        backoff->current_ms *= 2;
    if (backoff->current_ms > backoff->limit_ms)
        backoff->current_ms = backoff->limit_ms;
    int64_t low =
        backoff->base_ms / 2 < backoff->current_ms ? backoff->base_ms / 2 : backoff->current_ms;
    return low + (int64_t)(random % (uint64_t)(backoff->current_ms - low + 1));
}

void tl_backoff_reset(struct tl_backoff *backoff)
{
    backoff->current_ms = 0;
}
