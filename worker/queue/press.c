/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/queue/press.h"

enum {
    SHARE_MOST = 50, /* as many as http.joins_per_minute allows by default */
    SHARE_LEAST = 5,
    MEMORY_SCARCE = 80, /* percent */
    MEMORY_FULL = 95,
};

/* No room is left, for this purpose, at so much of a bound. Half of max_pending and a twentieth of
 * max_lag are 1.5 s behind, with the defaults. */
static const double of_pending = 0.5, of_lag = 0.05;

/* What is left of 1. */
static double room(double used, double most)
{
    return used < most ? 1 - used / most : 0;
}

static double least(double a, double b)
{
    return a < b ? a : b;
}

uint64_t tl_press_share(const struct tl_press *press)
{
    double left = room((double)press->pending, (double)press->pending_max * of_pending);
    left = least(left, room((double)press->lag_ms, (double)press->lag_max_ms * of_lag));
    if (press->memory_percent > MEMORY_SCARCE)
        left =
            least(left, room(press->memory_percent - MEMORY_SCARCE, MEMORY_FULL - MEMORY_SCARCE));
    if (left > 0.5)
        return 0;
    return SHARE_LEAST + (uint64_t)((SHARE_MOST - SHARE_LEAST) * 2 * left);
}
