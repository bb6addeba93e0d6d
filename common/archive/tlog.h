/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A transparency log: a list of leaves that only grows, under one hash, the root of a Merkle tree
 * (RFC 6962, 2.1). Its hashes are kept in tiles of up to 256, as in https://c2sp.org/tlog-tiles:
 * tile n of level L has the hashes of the subtrees of 256^L leaves, from number 256 * n on. Nothing
 * here uses the network or the clock.
 */
#ifndef TL_TLOG_H
#define TL_TLOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"

enum {
    TL_TLOG_HASH_BYTES = 32,
    TL_TLOG_TILE = 256,    /* hashes of a full tile */
    TL_TLOG_LEVELS = 7,    /* enough for TL_TLOG_SIZE_MAX leaves */
    TL_TLOG_PROOF_MAX = 64 /* hashes of a proof */
};
#define TL_TLOG_SIZE_MAX (UINT64_C(1) << 53)

struct tl_hash {
    unsigned char bytes[TL_TLOG_HASH_BYTES];
};

void tl_tlog_leaf_hash(const void *data, size_t length, struct tl_hash *hash);
bool tl_hash_equal(const struct tl_hash *a, const struct tl_hash *b);

/* ---- a log that grows ---- */

/* The right edge of a log: the tiles that are not full yet. Zeroed: an empty log. */
struct tl_tlog {
    uint64_t size;
    struct tl_hash tiles[TL_TLOG_LEVELS][TL_TLOG_TILE];
};

/* The number of the tile of this level that is not full yet; *count: how many hashes it has, 0 to
 * 255. */
uint64_t tl_tlog_open_tile(uint64_t size, unsigned level, unsigned *count);
/* Called with a tile that has become full. False ends the call that made it so. */
typedef bool tl_tlog_full_fn(void *context, unsigned level, uint64_t n,
                             const struct tl_hash hashes[TL_TLOG_TILE]);
/* Adds a leaf. False when `full` said so: the log must no longer be used. */
bool tl_tlog_add(struct tl_tlog *log, const struct tl_hash *leaf, tl_tlog_full_fn *full,
                 void *context);
/* Of an empty log it is the hash of nothing. */
void tl_tlog_root(const struct tl_tlog *log, struct tl_hash *root);

/* ---- proofs ---- */

/* Where tiles are read from. `read` fills in the first `count` hashes of the tile. */
struct tl_tlog_tiles {
    void *context;
    bool (*read)(void *context, unsigned level, uint64_t n, unsigned count,
                 struct tl_hash hashes[TL_TLOG_TILE], struct tl_error *err);
};

struct tl_tlog_proof {
    size_t n;
    struct tl_hash hashes[TL_TLOG_PROOF_MAX];
};

/* That leaf `index` is in the log of this size. TL_ERR_INVALID: there is no such leaf. */
bool tl_tlog_inclusion_prove(const struct tl_tlog_tiles *tiles, uint64_t index, uint64_t size,
                             struct tl_tlog_proof *proof, struct tl_error *err);
/* Does the proof show it? */
bool tl_tlog_inclusion_verify(const struct tl_hash *leaf, uint64_t index, uint64_t size,
                              const struct tl_tlog_proof *proof, const struct tl_hash *root);
/* ---- bundles of leaves ---- */

/* Takes the next leaf off *bytes, which holds *length: two bytes of its length, then itself, as in
 * the entry bundles of tlog-tiles. False at the end, and where it is cut off: then *length is not
 * 0. */
bool tl_bundle_next(const unsigned char **bytes, size_t *length, const char **leaf,
                    size_t *leaf_length);

#endif
