/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "worker/archive/trail_path.h"

enum { GROUP = 3, GENERATION_DIGITS = 16 };

/* A number of 1 to `most` digits without a zero before it. */
static bool read_number(const char **at, size_t most, uint64_t *number)
{
    size_t n = strspn(*at, "0123456789");
    if (n == 0 || n > most || (n > 1 && **at == '0'))
        return false;
    *number = 0;
    for (; n > 0; n--)
        *number = *number * 10 + (uint64_t)(*(*at)++ - '0');
    return true;
}

static bool skip(const char **at, const char *text)
{
    size_t length = strlen(text);
    if (strncmp(*at, text, length) != 0)
        return false;
    *at += length;
    return true;
}

/* x001/x234/067. The first group is not zero, unless it is the only one. */
static bool read_index(const char **at, uint64_t *n)
{
    *n = 0;
    for (unsigned groups = 1;; groups++) {
        bool more = skip(at, "x");
        if (strspn(*at, "0123456789") != GROUP)
            return false;
        for (unsigned i = 0; i < GROUP; i++)
            *n = *n * 10 + (uint64_t)(*(*at)++ - '0');
        if (*n > TL_TLOG_SIZE_MAX || (groups == 1 && more && *n == 0))
            return false;
        if (!more)
            return true;
        if (!skip(at, "/"))
            return false;
    }
}

static bool read_tile(const char *at, struct tl_trail_tile *tile)
{
    uint64_t level = 0, width = TL_TLOG_TILE;
    bool leaves = skip(&at, "entries");
    if ((!leaves && !read_number(&at, 2, &level)) || level >= TL_TLOG_LEVELS || !skip(&at, "/") ||
        !read_index(&at, &tile->n))
        return false;
    bool partial = skip(&at, ".p/");
    if (partial && (!read_number(&at, GROUP, &width) || width == 0 || width >= TL_TLOG_TILE))
        return false;
    tile->level = leaves ? TL_TRAIL_LEAVES : (int)level;
    tile->width = (unsigned)width;
    return *at == '\0';
}

bool tl_trail_path_read(const char *path, struct tl_archive_job *job)
{
    const char *at = path;
    job->generation = 0;
    if (read_number(&at, GENERATION_DIGITS, &job->generation)) {
        if (job->generation == 0 || !skip(&at, "/"))
            return false;
    } else {
        at = path;
    }
    job->kind = TL_ARCHIVE_CHECKPOINT;
    if (strcmp(at, "checkpoint") == 0)
        return true;
    job->kind = TL_ARCHIVE_TILE;
    return skip(&at, "tile/") && read_tile(at, &job->tile);
}
