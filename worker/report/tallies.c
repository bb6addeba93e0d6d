/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "worker/report/tallies.h"

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

struct tl_tally *tl_tallies_of(struct tl_tallies *tallies, const char *queue, uint32_t stream)
{
    for (size_t i = 0; i < tallies->n; i++) {
        struct tl_tally *tally = &tallies->list[i];
        if (tally->stream == stream && strcmp(tally->queue, queue) == 0)
            return tally;
    }
    if (tallies->n == TL_TALLIES)
        return NULL;
    struct tl_tally *fresh = &tallies->list[tallies->n++];
    *fresh = (struct tl_tally){.stream = stream};
    snprintf(fresh->queue, sizeof(fresh->queue), "%s", queue);
    return fresh;
}
