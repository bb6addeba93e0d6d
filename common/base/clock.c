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
