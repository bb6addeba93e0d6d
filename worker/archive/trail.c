/* SPDX-License-Identifier: Apache-2.0 */
/* The trail, as the archiver has written it. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "common/auth/secret_file.h"
#include "common/base/text.h"
#include "worker/archive/reading.h"

enum {
    TILES_MAX = 24,      /* that a proof needs at most */
    GENERATIONS_MAX = 8, /* of a queue, in which a place is looked for */
    TILE_BYTES = TL_TLOG_TILE * TL_TLOG_HASH_BYTES
};

/* The bytes of a bytea. NULL when out of memory; freed with PQfreemem. */
static unsigned char *bytes_of(const PGresult *rows, int row, int column, size_t *length)
{
    return PQunescapeBytea((const unsigned char *)PQgetvalue(rows, row, column), length);
}

static bool no_memory(struct tl_error *err)
{
    return tl_error_set(err, TL_ERR_NOMEM, "no memory for what the archive says");
}

/* What of the queue has a trail: the generation of the job, or the last one. $1 and $2 are its name
 * and the generation. */
#define TRAIL                                                                                      \
    "queues JOIN queue_generations AS g USING (queue_id) JOIN trails USING (generation_id) "       \
    "WHERE name = $1 AND ($2::bigint = 0 OR generation = $2::bigint) "                             \
    "ORDER BY generation DESC LIMIT 1"

/* Keeps a copy as the answer. */
static bool take_bytes(struct tl_archive_job *job, const void *bytes, size_t length,
                       struct tl_error *err)
{
    job->bytes = malloc(length + 1);
    if (job->bytes == NULL)
        return no_memory(err);
    memcpy(job->bytes, bytes, length);
    job->bytes[length] = '\0';
    job->length = length;
    return true;
}

bool tl_reading_checkpoint(struct tl_reading *reading, struct tl_archive_job *job,
                           struct tl_error *err)
{
    char generation[TL_POSTGRES_TEXT];
    const char *const values[] = {job->queue, tl_postgres_text(job->generation, generation)};
    PGresult *rows =
        tl_postgres_run(&reading->postgres, "SELECT checkpoint FROM " TRAIL, 2, values, err);
    if (rows == NULL)
        return false;
    job->found = PQntuples(rows) > 0 ? TL_ARCHIVE_FOUND : TL_ARCHIVE_NONE;
    bool ok = job->found == TL_ARCHIVE_NONE ||
              take_bytes(job, PQgetvalue(rows, 0, 0), (size_t)PQgetlength(rows, 0, 0), err);
    PQclear(rows);
    return ok;
}

/* The length of the first `width` leaves of a bundle, or hashes of a tile; 0: it has fewer. */
static size_t length_of(const struct tl_trail_tile *tile, const unsigned char *bytes, size_t length)
{
    const unsigned char *at = bytes;
    const char *leaf;
    size_t n, left = length, hashes = (size_t)tile->width * TL_TLOG_HASH_BYTES;
    if (tile->level != TL_TRAIL_LEAVES)
        return hashes <= length ? hashes : 0;
    for (unsigned i = 0; i < tile->width; i++)
        if (!tl_bundle_next(&at, &left, &leaf, &n))
            return 0;
    return length - left;
}

bool tl_reading_tile(struct tl_reading *reading, struct tl_archive_job *job, struct tl_error *err)
{
    char generation[TL_POSTGRES_TEXT], level[TL_POSTGRES_TEXT], n[TL_POSTGRES_TEXT];
    snprintf(level, sizeof(level), "%d", job->tile.level);
    const char *const values[] = {job->queue, tl_postgres_text(job->generation, generation), level,
                                  tl_postgres_text(job->tile.n, n)};
    PGresult *rows =
        tl_postgres_run(&reading->postgres,
                        "SELECT string_agg(bytes, '' ORDER BY first) FROM trail_tiles WHERE "
                        "generation_id = (SELECT generation_id FROM " TRAIL ") AND level = $3 AND "
                        "n = $4",
                        4, values, err);
    if (rows == NULL)
        return false;
    bool ok = true;
    size_t length = 0;
    unsigned char *bytes = NULL;
    job->found = TL_ARCHIVE_NONE;
    if (!PQgetisnull(rows, 0, 0)) {
        bytes = bytes_of(rows, 0, 0, &length);
        ok = bytes != NULL || no_memory(err);
    }
    PQclear(rows);
    length = bytes != NULL ? length_of(&job->tile, bytes, length) : 0;
    if (length > 0) {
        job->found = TL_ARCHIVE_FOUND;
        ok = take_bytes(job, bytes, length, err);
    }
    PQfreemem(bytes);
    return ok;
}

/* ---- the proof of a place ---- */

/* The leaf by which the place was given: in the last generation in which it came back, else in that
 * of its ticket. *generation_id 0: none has. */
static bool find_leaf(struct tl_reading *reading, const struct tl_archive_job *job,
                      uint64_t *generation_id, struct tl_error *err)
{
    char most[TL_POSTGRES_TEXT], seq[TL_POSTGRES_TEXT], generation[TL_POSTGRES_TEXT];
    struct tl_archived_proof *proof = job->proof;
    const char *const values[] = {job->queue, tl_postgres_text(GENERATIONS_MAX, most),
                                  tl_postgres_text(job->generation, generation)};
    PGresult *all = tl_postgres_run(
        &reading->postgres,
        "SELECT generation_id, generation FROM queues JOIN queue_generations USING (queue_id) JOIN "
        "trails USING (generation_id) WHERE name = $1 AND generation >= $3 "
        "ORDER BY generation DESC LIMIT $2",
        3, values, err);
    bool ok = all != NULL;
    *generation_id = 0;
    for (int i = 0; ok && *generation_id == 0 && i < PQntuples(all); i++) {
        const bool is_own = tl_postgres_number(all, i, 1) == job->generation;
        const char *const place[] = {PQgetvalue(all, i, 0), tl_postgres_text(job->seq, seq),
                                     is_own ? "t" : "f"};
        PGresult *rows =
            tl_postgres_run(&reading->postgres,
                            "SELECT leaf FROM queue_entries WHERE generation_id = $1 "
                            "AND (seq = $2 OR joined_seq = $2) AND leaf IS NOT NULL "
                            "AND ($3::boolean OR restored_at IS NOT NULL) " TL_READING_LAST,
                            3, place, err);
        ok = rows != NULL;
        if (ok && PQntuples(rows) > 0) {
            *generation_id = tl_postgres_number(all, i, 0);
            proof->generation = tl_postgres_number(all, i, 1);
            proof->index = tl_postgres_number(rows, 0, 0);
        }
        PQclear(rows);
    }
    PQclear(all);
    return ok;
}

/* The tiles that a proof needs: first only which, then with their bytes. */
struct tiles {
    const PGresult *rows; /* NULL: not asked for yet */
    size_t n;
    struct {
        unsigned level;
        uint64_t n;
    } wanted[TILES_MAX];
};

static bool want(struct tiles *tiles, unsigned level, uint64_t n, struct tl_error *err)
{
    for (size_t i = 0; i < tiles->n; i++)
        if (tiles->wanted[i].level == level && tiles->wanted[i].n == n)
            return true;
    if (tiles->n == TILES_MAX)
        return tl_error_set(err, TL_ERR_INVALID, "a proof needs more than %d tiles", TILES_MAX);
    tiles->wanted[tiles->n].level = level;
    tiles->wanted[tiles->n++].n = n;
    return true;
}

/* The row of this tile; -1: there is none. */
static int find_row(const PGresult *rows, int level, uint64_t n)
{
    for (int row = 0; row < PQntuples(rows); row++)
        if (strtol(PQgetvalue(rows, row, 0), NULL, 10) == level &&
            tl_postgres_number(rows, row, 1) == n)
            return row;
    return -1;
}

static bool incomplete(struct tl_error *err)
{
    return tl_error_set(err, TL_ERR_STORE, "the trail in PostgreSQL is not whole");
}

/* The proof does not depend on the hashes: it is made twice. */
static bool read_hashes(void *context, unsigned level, uint64_t n, unsigned count,
                        struct tl_hash hashes[TL_TLOG_TILE], struct tl_error *err)
{
    struct tiles *tiles = context;
    memset(hashes, 0, count * sizeof(*hashes));
    if (tiles->rows == NULL)
        return want(tiles, level, n, err);
    int row = find_row(tiles->rows, (int)level, n);
    if (row < 0)
        return incomplete(err);
    size_t length;
    unsigned char *bytes = bytes_of(tiles->rows, row, 2, &length);
    if (bytes == NULL)
        return no_memory(err);
    bool ok = length >= (size_t)count * TL_TLOG_HASH_BYTES || incomplete(err);
    for (unsigned i = 0; ok && i < count; i++)
        memcpy(hashes[i].bytes, bytes + (size_t)i * TL_TLOG_HASH_BYTES, TL_TLOG_HASH_BYTES);
    PQfreemem(bytes);
    return ok;
}

/* The text of the leaf, from its bundle. */
static bool read_leaf(const PGresult *rows, struct tl_archived_proof *proof, struct tl_error *err)
{
    int row = find_row(rows, TL_TRAIL_LEAVES, proof->index / TL_TLOG_TILE);
    size_t length = 0, leaf_length = 0;
    const char *leaf = NULL;
    if (row < 0)
        return incomplete(err);
    unsigned char *bytes = bytes_of(rows, row, 2, &length);
    const unsigned char *at = bytes;
    bool ok = bytes != NULL || no_memory(err);
    for (uint64_t i = 0; ok && i <= proof->index % TL_TLOG_TILE; i++)
        ok = tl_bundle_next(&at, &length, &leaf, &leaf_length) || incomplete(err);
    ok = ok && (leaf_length <= TL_LEAF_MAX || incomplete(err));
    if (ok) {
        memcpy(proof->leaf, leaf, leaf_length);
        proof->leaf[leaf_length] = '\0';
    }
    PQfreemem(bytes);
    return ok;
}

/* One query brings all tiles, and the bundle of the leaf. */
static PGresult *fetch(struct tl_reading *reading, uint64_t generation_id,
                       const struct tl_archived_proof *proof, const struct tiles *tiles,
                       struct tl_error *err)
{
    struct tl_text sql = {0};
    tl_text_append(&sql,
                   "SELECT level, n, string_agg(bytes, '' ORDER BY first) FROM trail_tiles WHERE "
                   "generation_id = %" PRIu64 " AND (level, n) IN ((%d, %" PRIu64 ")",
                   generation_id, TL_TRAIL_LEAVES, proof->index / TL_TLOG_TILE);
    for (size_t i = 0; i < tiles->n; i++)
        tl_text_append(&sql, ", (%u, %" PRIu64 ")", tiles->wanted[i].level, tiles->wanted[i].n);
    tl_text_append(&sql, ") GROUP BY level, n");
    if (sql.failed)
        no_memory(err);
    PGresult *rows =
        sql.failed ? NULL : tl_postgres_run(&reading->postgres, sql.data, 0, NULL, err);
    tl_text_free(&sql);
    return rows;
}

/* The salt of the leaf, which is made with the key of the archivers: a worker may have it. A leaf
 * that does not name the visitor is none of theirs. */
static bool take_salt(const struct tl_reading *reading, struct tl_archive_job *job,
                      struct tl_error *err)
{
    struct tl_archived_proof *proof = job->proof;
    char who[TL_LEAF_WHO_SIZE], held_by[TL_LEAF_WHO_SIZE];
    unsigned char key[TL_SECRET_KEY_BYTES];
    struct tl_leaf leaf;
    if (!tl_leaf_read(proof->leaf, strlen(proof->leaf), &leaf, err))
        return false;
    tl_place place = tl_leaf_held(&leaf, held_by);
    proof->has_salt = tl_secret_load_key(reading->key_path, "the key of the archive", NULL, key,
                                         &(struct tl_error){0});
    if (proof->has_salt)
        tl_leaf_salt(key, proof->generation, tl_place_seq(place), proof->salt);
    sodium_memzero(key, sizeof(key));
    tl_leaf_who(proof->salt, job->visitor, strlen(job->visitor), who);
    if (proof->has_salt && strcmp(who, held_by) != 0)
        job->found = TL_ARCHIVE_NONE;
    return true;
}

static bool prove(struct tl_reading *reading, struct tl_archive_job *job, uint64_t generation_id,
                  struct tl_error *err)
{
    struct tl_archived_proof *proof = job->proof;
    struct tiles tiles = {0};
    const struct tl_tlog_tiles source = {.context = &tiles, .read = read_hashes};
    if (!tl_tlog_inclusion_prove(&source, proof->index, proof->size, &proof->path, err))
        return false;
    PGresult *rows = fetch(reading, generation_id, proof, &tiles, err);
    tiles.rows = rows;
    bool ok = rows != NULL &&
              tl_tlog_inclusion_prove(&source, proof->index, proof->size, &proof->path, err) &&
              read_leaf(rows, proof, err) && take_salt(reading, job, err);
    PQclear(rows);
    return ok;
}

/* The checkpoint is read after the leaf was found, so it includes it. */
bool tl_reading_proof(struct tl_reading *reading, struct tl_archive_job *job, struct tl_error *err)
{
    char id[TL_POSTGRES_TEXT];
    uint64_t generation_id;
    job->found = TL_ARCHIVE_NONE;
    job->proof = calloc(1, sizeof(*job->proof));
    if (job->proof == NULL)
        return no_memory(err);
    if (!find_leaf(reading, job, &generation_id, err))
        return false;
    if (generation_id == 0)
        return true;
    const char *const values[] = {tl_postgres_text(generation_id, id)};
    PGresult *rows = tl_postgres_run(&reading->postgres,
                                     "SELECT size, checkpoint FROM trails WHERE generation_id = $1",
                                     1, values, err);
    if (rows == NULL)
        return false;
    bool ok = true;
    if (PQntuples(rows) > 0) {
        job->found = TL_ARCHIVE_FOUND;
        job->proof->size = tl_postgres_number(rows, 0, 0);
        ok = take_bytes(job, PQgetvalue(rows, 0, 1), (size_t)PQgetlength(rows, 0, 1), err) &&
             prove(reading, job, generation_id, err);
    }
    PQclear(rows);
    return ok;
}
