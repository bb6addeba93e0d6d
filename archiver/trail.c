/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "archiver/rows.h"
#include "archiver/trail.h"
#include "common/archive/tlog.h"
#include "common/base/clock.h"
#include "common/base/grow.h"

enum {
    NUMBER_SIZE = 24,
    COLUMNS = 5,
    HEAD = 2 + COLUMNS * 4 + 4 + 2 + 2 + 8, /* of a piece, beside its bytes */
    LEAVES = -1,                            /* the level of bundles */
    DAMAGE_LOG_MS = 60000
};

/* The tiles that are not full, put together from their pieces. */
#define READ                                                                                       \
    "SELECT size, l, (SELECT string_agg(bytes, '' ORDER BY first) FROM trail_tiles "               \
    "WHERE generation_id = $1 AND level = l AND n = size >> (8 * greatest(l + 1, 1))) "            \
    "FROM trails CROSS JOIN generate_series(-1, 6) AS l WHERE generation_id = $1"
/* Drops the pieces of those that were not full before, and are now: these are written whole. */
#define SAVE                                                                                       \
    "WITH gone AS (DELETE FROM trail_tiles AS x USING generate_series(-1, 6) AS l "                \
    "WHERE x.generation_id = $1 AND x.level = l AND "                                              \
    "x.n = $4::bigint >> (8 * greatest(l + 1, 1)) AND "                                            \
    "x.n < $2::bigint >> (8 * greatest(l + 1, 1))) "                                               \
    "INSERT INTO trails VALUES ($1, $2, $3) ON CONFLICT (generation_id) "                          \
    "DO UPDATE SET size = excluded.size, checkpoint = excluded.checkpoint"

static bool no_memory(struct tl_error *err)
{
    return tl_error_set(err, TL_ERR_NOMEM, "no memory for the trail");
}

static bool reserve(struct tl_text *out, size_t more)
{
    char *data = tl_grow(out->data, &out->capacity, out->length + more, 1);
    out->data = data != NULL ? data : out->data;
    return data != NULL;
}

static bool append(struct tl_text *out, const void *bytes, size_t length)
{
    if (length == 0)
        return true;
    if (!reserve(out, length))
        return false;
    memcpy(out->data + out->length, bytes, length);
    out->length += length;
    return true;
}

/* ---- what is there ---- */

/* Takes over the bytes of a tile, "\x" and hex digits. False: they are not as many as they have to
 * be. */
static bool take_tile(struct tl_trail *trail, int level, const char *hex)
{
    size_t room = strlen(hex) / 2, n = 0;
    unsigned count;
    unsigned char *bytes;
    if (strncmp(hex, "\\x", 2) != 0 || level < LEAVES || level >= TL_TLOG_LEVELS)
        return false;
    if (level == LEAVES) {
        trail->bundle.length = 0;
        if (!reserve(&trail->bundle, room))
            return false;
        bytes = (unsigned char *)trail->bundle.data;
    } else {
        bytes = trail->log.tiles[level][0].bytes;
        room = sizeof(trail->log.tiles[level]);
    }
    if (sodium_hex2bin(bytes, room, hex + 2, strlen(hex + 2), NULL, &n, NULL) != 0)
        return false;
    if (level == LEAVES) {
        trail->bundle.length = n;
        return true;
    }
    tl_tlog_open_tile(trail->log.size, (unsigned)level, &count);
    return n == (size_t)count * TL_TLOG_HASH_BYTES;
}

/* The number of leaves in the bundle that is not full. */
static unsigned leaves_of(const struct tl_text *bundle)
{
    const unsigned char *bytes = (const unsigned char *)bundle->data;
    size_t length = bundle->length, leaf_length;
    const char *leaf;
    unsigned n = 0;
    while (tl_bundle_next(&bytes, &length, &leaf, &leaf_length))
        n++;
    return length == 0 ? n : UINT32_MAX;
}

/* Which tiles have to be there: a bit for each level, that of leaves first. */
static unsigned wanted(uint64_t size)
{
    unsigned bits = 0, count;
    for (unsigned level = 0; level < TL_TLOG_LEVELS; level++) {
        tl_tlog_open_tile(size, level, &count);
        bits |= count > 0 ? (level == 0 ? 3U : 1U << (level + 1)) : 0;
    }
    return bits;
}

/* *sound: the trail can be added to. */
static bool load(struct tl_trail *trail, struct tl_postgres *postgres, const char *id, bool *sound,
                 struct tl_error *err)
{
    const char *const values[] = {id};
    trail->log.size = 0;
    trail->bundle.length = 0;
    PGresult *found = tl_postgres_run(postgres, READ, 1, values, err);
    if (found == NULL)
        return false;
    if (PQntuples(found) > 0)
        trail->log.size = strtoull(PQgetvalue(found, 0, 0), NULL, 10);
    bool ok = true;
    unsigned bits = 0, count;
    for (int i = 0; ok && i < PQntuples(found); i++) {
        int level = (int)strtol(PQgetvalue(found, i, 1), NULL, 10);
        if (PQgetisnull(found, i, 2))
            continue;
        ok = take_tile(trail, level, PQgetvalue(found, i, 2));
        bits |= ok ? 1U << (level + 1) : 0;
    }
    PQclear(found);
    tl_tlog_open_tile(trail->log.size, 0, &count);
    *sound = ok && bits == wanted(trail->log.size) && leaves_of(&trail->bundle) == count;
    return true;
}

/* ---- what is added ---- */

struct writing {
    struct tl_trail *trail;
    const struct tl_archive_part *part;
};

/* A piece of tile n, or all of it: what it has from number `first` on. */
static bool put_piece(const struct writing *writing, int level, uint64_t n, unsigned first,
                      const void *bytes, size_t length)
{
    struct tl_text *out = &writing->trail->tiles;
    if (!reserve(out, HEAD + length))
        return false;
    tl_rows_put(out, COLUMNS, 2);
    tl_rows_put_number(out, (uint64_t)writing->part->generation_id, 4);
    tl_rows_put_number(out, (uint64_t)(int64_t)level, 2);
    tl_rows_put_number(out, first, 2);
    tl_rows_put_number(out, n, 8);
    tl_rows_put(out, length, 4);
    return append(out, bytes, length);
}

static bool put_full(void *context, unsigned level, uint64_t n,
                     const struct tl_hash hashes[TL_TLOG_TILE])
{
    return put_piece(context, (int)level, n, 0, hashes, TL_TLOG_TILE * sizeof(*hashes));
}

/* What is new in the tiles that are not full, and in the last bundle: these leaves. */
static bool put_open(const struct writing *writing, const void *leaves, size_t length)
{
    const struct tl_tlog *log = &writing->trail->log;
    for (int level = LEAVES; level < TL_TLOG_LEVELS; level++) {
        unsigned height = level == LEAVES ? 0 : (unsigned)level, count, first;
        uint64_t n = tl_tlog_open_tile(log->size, height, &count);
        if (tl_tlog_open_tile(writing->part->first_leaf, height, &first) != n)
            first = 0; /* the one before is full */
        const void *bytes = level == LEAVES ? leaves : &log->tiles[level][first];
        size_t size = level == LEAVES ? length : (count - first) * sizeof(struct tl_hash);
        if (size > 0 && !put_piece(writing, level, n, first, bytes, size))
            return false;
    }
    return true;
}

static bool add_leaves(struct tl_trail *trail, const struct tl_archive_part *part)
{
    struct writing writing = {trail, part};
    const unsigned char *rest = part->leaves.bytes, *from = rest;
    size_t left = part->leaves.length, length;
    const char *leaf;
    while (tl_bundle_next(&rest, &left, &leaf, &length)) {
        struct tl_hash hash;
        uint64_t n = trail->log.size / TL_TLOG_TILE;
        tl_tlog_leaf_hash(leaf, length, &hash);
        if (!tl_tlog_add(&trail->log, &hash, put_full, &writing))
            return false;
        if (trail->log.size % TL_TLOG_TILE != 0)
            continue;
        if (!append(&trail->bundle, from, (size_t)(rest - from)) ||
            !put_piece(&writing, LEAVES, n, 0, trail->bundle.data, trail->bundle.length))
            return false;
        trail->bundle.length = 0;
        from = rest;
    }
    return put_open(&writing, from, (size_t)(rest - from));
}

static bool save(struct tl_trail *trail, struct tl_postgres *postgres,
                 const struct tl_archive_part *part, const char *id, struct tl_error *err)
{
    char size[NUMBER_SIZE], before[NUMBER_SIZE], checkpoint[TL_CHECKPOINT_MAX];
    const char *const values[] = {id, size, checkpoint, before};
    struct tl_hash root;
    tl_tlog_root(&trail->log, &root);
    snprintf(size, sizeof(size), "%" PRIu64, trail->log.size);
    snprintf(before, sizeof(before), "%" PRIu64, part->first_leaf);
    tl_checkpoint_write(&trail->signer, part->queue, part->generation, trail->log.size, &root,
                        checkpoint);
    return tl_postgres_do(postgres, SAVE, 4, values, err);
}

static bool write_part(struct tl_trail *trail, struct tl_postgres *postgres,
                       struct tl_archive_part *part, struct tl_error *err)
{
    char id[NUMBER_SIZE];
    bool sound;
    unsigned suppressed;
    snprintf(id, sizeof(id), "%d", part->generation_id);
    if (!load(trail, postgres, id, &sound, err))
        return false;
    part->first_leaf = sound ? trail->log.size : TL_TRAIL_NO_LEAF;
    if (!sound) {
        if (tl_log_allow(&trail->damage_log, tl_clock_ms(), DAMAGE_LOG_MS, &suppressed))
            tl_log(TL_LOG_ERROR, &(struct tl_log_fields){.queue = part->queue},
                   "tiles of the trail of generation_id %s are missing or damaged in PostgreSQL: "
                   "nothing is added to it until they are restored",
                   id);
        return true;
    }
    if (!add_leaves(trail, part))
        return no_memory(err);
    return save(trail, postgres, part, id, err);
}

bool tl_trail_write(struct tl_trail *trail, struct tl_postgres *postgres,
                    struct tl_archive_batch *batch, struct tl_error *err)
{
    trail->tiles.length = 0;
    if (batch->n_leaves == 0)
        return true;
    if (!tl_rows_begin(&trail->tiles, 2))
        return no_memory(err);
    for (size_t i = 0; i < batch->n_parts; i++) {
        struct tl_archive_part *part = &batch->parts[i];
        if (part->leaves.n > 0 && !write_part(trail, postgres, part, err))
            return false;
    }
    if (!reserve(&trail->tiles, 2))
        return no_memory(err);
    tl_rows_put(&trail->tiles, UINT16_MAX, 2);
    return tl_postgres_copy(postgres, "COPY trail_tiles FROM STDIN (FORMAT binary)",
                            trail->tiles.data, trail->tiles.length, err);
}

void tl_trail_close(struct tl_trail *trail)
{
    tl_text_free(&trail->bundle);
    tl_text_free(&trail->tiles);
    sodium_memzero(&trail->signer, sizeof(trail->signer));
}
