/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "common/auth/base64.h"

#include "ctl/trail/file.h"
#include "lab/memory.h"

enum {
    WINDOW = 1000, /* lines that are removed or inserted at one place */
    MOST = 100     /* differences: each is looked for in all hashes */
};

void tl_trail_file_free(struct tl_trail_file *file)
{
    free(file->hashes);
    free(file->leaves);
    free(file->offsets);
    *file = (struct tl_trail_file){0};
}

/* A line without its end. False: there is none. */
static bool next_line(FILE *in, char **line, size_t *capacity, size_t *length)
{
    ssize_t n = getline(line, capacity, in);
    if (n <= 0)
        return false;
    *length = (size_t)n - ((*line)[n - 1] == '\n');
    return true;
}

bool tl_trail_checkpoint_read(FILE *in, char text[TL_CHECKPOINT_MAX], size_t *length,
                              struct tl_checkpoint *checkpoint, struct tl_error *err)
{
    char *line = NULL;
    size_t capacity = 0, n, empty = 0;
    *length = 0;
    while (empty < 2 && next_line(in, &line, &capacity, &n) &&
           *length + n + 1 < TL_CHECKPOINT_MAX) {
        empty += n == 0;
        if (empty == 2)
            break;
        memcpy(text + *length, line, n);
        text[*length + n] = '\n';
        *length += n + 1;
    }
    free(line);
    return tl_checkpoint_read(text, *length, checkpoint, err);
}

static bool read_hashes(FILE *in, struct tl_trail_file *file, struct tl_error *err)
{
    char *line = NULL;
    size_t capacity = 0, length, n;
    bool ok = true;
    while (ok && next_line(in, &line, &capacity, &length) && length > 0) {
        file->hashes = tl_xgrow(file->hashes, &file->hashes_capacity, file->n_hashes + TL_TLOG_TILE,
                                sizeof(*file->hashes));
        ok = tl_base64_decode(line, length, file->hashes[file->n_hashes].bytes,
                              TL_TLOG_TILE * TL_TLOG_HASH_BYTES, &n) &&
             n % TL_TLOG_HASH_BYTES == 0;
        file->n_hashes += ok ? n / TL_TLOG_HASH_BYTES : 0;
    }
    free(line);
    return ok || tl_error_set(err, TL_ERR_INVALID, "line %zu of the hashes cannot be read",
                              file->n_hashes / TL_TLOG_TILE + 1);
}

bool tl_trail_file_read(FILE *in, struct tl_trail_file *file,
                        void (*take)(void *context, const char *line, size_t length), void *context,
                        struct tl_error *err)
{
    char *line = NULL;
    size_t capacity = 0, length;
    *file = (struct tl_trail_file){0};
    if (!tl_trail_checkpoint_read(in, file->text, &file->length, &file->checkpoint, err) ||
        !read_hashes(in, file, err))
        return false;
    for (long at = ftell(in); next_line(in, &line, &capacity, &length); at = ftell(in)) {
        size_t n = file->n_leaves++;
        file->leaves = tl_xgrow(file->leaves, &file->leaves_capacity, n + 1, sizeof(*file->leaves));
        file->offsets =
            tl_xgrow(file->offsets, &file->offsets_capacity, n + 1, sizeof(*file->offsets));
        file->offsets[n] = (uint64_t)at;
        tl_tlog_leaf_hash(line, length, &file->leaves[n]);
        take(context, line, length);
    }
    free(line);
    return !ferror(in) || tl_error_set(err, TL_ERR_SYSTEM, "the file cannot be read");
}

static bool drop_tile(void *context, unsigned level, uint64_t n, const struct tl_hash *hashes)
{
    (void)context, (void)level, (void)n, (void)hashes;
    return true;
}

void tl_trail_root(const struct tl_hash *hashes, size_t n, struct tl_hash *root)
{
    struct tl_tlog *log = tl_xalloc(1, sizeof(*log));
    for (size_t i = 0; i < n; i++)
        (void)tl_tlog_add(log, &hashes[i], drop_tile, NULL);
    tl_tlog_root(log, root);
    free(log);
}

/* ---- differences ---- */

static bool same(const struct tl_trail_file *file, size_t at, size_t line)
{
    return at < file->n_hashes && line < file->n_leaves &&
           tl_hash_equal(&file->hashes[at], &file->leaves[line]);
}

/* A line that is not leaf `at`, nor the leaf of another number: it was altered. */
static struct tl_trail_difference differ(const struct tl_trail_file *file, size_t at, size_t line)
{
    struct tl_trail_difference found = {.how = TL_TRAIL_ALTERED, .at = at, .line = line, .n = 1};
    if (same(file, at + 1, line) && same(file, at, line + 1)) {
        found.how = TL_TRAIL_SWAPPED;
        return found;
    }
    bool ends = at + 1 == file->n_hashes && line + 1 == file->n_leaves;
    for (size_t n = 1; !same(file, at + 1, line + 1) && !ends && n <= WINDOW; n++) {
        found.n = n;
        if (same(file, at + n, line) || (line == file->n_leaves && at + n == file->n_hashes)) {
            found.how = TL_TRAIL_REMOVED;
            return found;
        }
        if (same(file, at, line + n) || (at == file->n_hashes && line + n == file->n_leaves)) {
            found.how = TL_TRAIL_INSERTED;
            return found;
        }
    }
    for (size_t other = 0; other < file->n_hashes; other++) {
        if (same(file, other, line)) {
            found.how = TL_TRAIL_REPLACED;
            found.other = other;
        }
    }
    return found;
}

void tl_trail_compare(const struct tl_trail_file *file,
                      void (*found)(void *context, const struct tl_trail_difference *difference),
                      void *context)
{
    size_t at = 0, line = 0, n = 0;
    while (n < MOST && (at < file->n_hashes || line < file->n_leaves)) {
        if (same(file, at, line)) {
            at++;
            line++;
            continue;
        }
        struct tl_trail_difference next = differ(file, at, line);
        found(context, &next);
        n++;
        at += next.how == TL_TRAIL_INSERTED  ? 0
              : next.how == TL_TRAIL_REMOVED ? next.n
              : next.how == TL_TRAIL_SWAPPED ? 2
                                             : 1;
        line += next.how == TL_TRAIL_REMOVED    ? 0
                : next.how == TL_TRAIL_INSERTED ? next.n
                : next.how == TL_TRAIL_SWAPPED  ? 2
                                                : 1;
    }
}
