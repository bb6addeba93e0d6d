/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/report/hitters.h"

uint32_t tl_hitters_add(struct tl_hitters *hitters, const struct tl_prefix *prefix, uint32_t stream,
                        int64_t now_ms)
{
    struct tl_hitter *least = &hitters->list[0];
    if (now_ms - hitters->window_ms >= TL_HITTERS_WINDOW_MS)
        *hitters = (struct tl_hitters){.window_ms = now_ms};
    hitters->total++;
    for (size_t i = 0; i < hitters->n; i++) {
        struct tl_hitter *hitter = &hitters->list[i];
        if (hitter->stream == stream && tl_prefix_equal(&hitter->prefix, prefix))
            return ++hitter->count - hitter->error;
        if (hitter->count < least->count)
            least = hitter;
    }
    if (hitters->n < TL_HITTERS)
        least = &hitters->list[hitters->n++];
    /* The one that it replaces may have been this network before. */
    *least = (struct tl_hitter){
        .prefix = *prefix, .stream = stream, .count = least->count + 1, .error = least->count};
    return 1;
}
