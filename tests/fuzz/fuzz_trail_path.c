/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses of a trail: what is read is within bounds, and is the only address of what it names. */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker/archive/trail_path.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

/* The address of a tile, as tlog-tiles says. */
static void write_tile(const struct tl_archive_job *job, char *text, size_t room)
{
    const struct tl_trail_tile *tile = &job->tile;
    uint64_t groups[8];
    int n = 0, at = 0;
    for (uint64_t rest = tile->n; n == 0 || rest > 0; rest /= 1000)
        groups[n++] = rest % 1000;
    if (job->generation > 0)
        at += snprintf(text + at, room - (size_t)at, "%" PRIu64 "/", job->generation);
    if (tile->level == TL_TRAIL_LEAVES)
        at += snprintf(text + at, room - (size_t)at, "tile/entries/");
    else
        at += snprintf(text + at, room - (size_t)at, "tile/%d/", tile->level);
    while (n-- > 0)
        at += snprintf(text + at, room - (size_t)at, "%s%03" PRIu64 "%s", n > 0 ? "x" : "",
                       groups[n], n > 0 ? "/" : "");
    if (tile->width < TL_TLOG_TILE)
        snprintf(text + at, room - (size_t)at, ".p/%u", tile->width);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tl_archive_job job = {0};
    char again[160];
    char *text = malloc(size + 1);
    require(text != NULL);
    memcpy(text, data, size);
    text[size] = '\0';
    if (tl_trail_path_read(text, &job) && job.kind == TL_ARCHIVE_TILE) {
        require(job.tile.width >= 1 && job.tile.width <= TL_TLOG_TILE);
        require(job.tile.n <= TL_TLOG_SIZE_MAX && job.tile.level < TL_TLOG_LEVELS);
        write_tile(&job, again, sizeof(again));
        require(strcmp(again, text) == 0);
    }
    free(text);
    return 0;
}
