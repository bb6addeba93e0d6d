/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/visit/effort.h"

enum { WINDOW_MS = 5000 };

/* The same counts as seen at this time. */
static struct tl_effort at(const struct tl_effort *effort, int64_t now_ms)
{
    int64_t window = now_ms / WINDOW_MS;
    struct tl_effort result = {.window = window};
    if (window == effort->window)
        result = *effort;
    else if (window == effort->window + 1)
        result.before = effort->count;
    return result;
}

void tl_effort_count(struct tl_effort *effort, int64_t now_ms)
{
    *effort = at(effort, now_ms);
    effort->count++;
}

unsigned tl_effort_bits(const struct tl_effort *effort, int64_t now_ms)
{
    const struct tl_effort seen = at(effort, now_ms);
    uint64_t most = seen.count > seen.before ? seen.count : seen.before;
    uint64_t a_second = most * 1000 / WINDOW_MS;
    unsigned bits = TL_EFFORT_BITS_MIN;
    for (uint64_t step = TL_EFFORT_REST; a_second >= step && bits < TL_EFFORT_BITS_MAX; step *= 2)
        bits++;
    return bits;
}
