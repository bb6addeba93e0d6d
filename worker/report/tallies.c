/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "worker/report/tallies.h"

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
