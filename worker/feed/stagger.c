/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/feed/stagger.h"

enum { VISITORS_PER_MS = 200 };

int64_t tl_stagger_until(int64_t now_ms, uint64_t size, uint32_t random)
{
    if (size < TL_STAGGER_SIZE)
        return now_ms;
    uint64_t most_ms = size / VISITORS_PER_MS;
    if (most_ms > TL_STAGGER_MS)
        most_ms = TL_STAGGER_MS;
    return now_ms + (int64_t)(most_ms * random >> 32);
}
