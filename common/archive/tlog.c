/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include <sodium.h>

#include "common/archive/tlog.h"
#include "common/base/big_endian.h"

enum { TILE_BITS = 8 };

void tl_tlog_leaf_hash(const void *data, size_t length, struct tl_hash *hash)
{
    static const unsigned char prefix = 0;
    crypto_hash_sha256_state state;
    crypto_hash_sha256_init(&state);
    crypto_hash_sha256_update(&state, &prefix, 1);
    crypto_hash_sha256_update(&state, data, length);
    crypto_hash_sha256_final(&state, hash->bytes);
}

static void node_hash(const struct tl_hash *left, const struct tl_hash *right, struct tl_hash *hash)
{
    unsigned char both[1 + 2 * TL_TLOG_HASH_BYTES] = {1};
    memcpy(both + 1, left->bytes, TL_TLOG_HASH_BYTES);
    memcpy(both + 1 + TL_TLOG_HASH_BYTES, right->bytes, TL_TLOG_HASH_BYTES);
    crypto_hash_sha256(hash->bytes, both, sizeof(both));
}

bool tl_hash_equal(const struct tl_hash *a, const struct tl_hash *b)
{
    return memcmp(a->bytes, b->bytes, TL_TLOG_HASH_BYTES) == 0;
}

/* The root of n hashes, a power of two. They are overwritten. */
static void fold(struct tl_hash *hashes, unsigned n, struct tl_hash *root)
{
    for (; n > 1; n /= 2)
        for (unsigned i = 0; i < n / 2; i++)
            node_hash(&hashes[2 * i], &hashes[2 * i + 1], &hashes[i]);
    *root = hashes[0];
}

/* ---- a log that grows ---- */

uint64_t tl_tlog_open_tile(uint64_t size, unsigned level, unsigned *count)
{
    uint64_t hashes = size >> (TILE_BITS * level);
    *count = (unsigned)(hashes % TL_TLOG_TILE);
    return hashes / TL_TLOG_TILE;
}

bool tl_tlog_add(struct tl_tlog *log, const struct tl_hash *leaf, tl_tlog_full_fn *full,
                 void *context)
{
    struct tl_hash hash = *leaf;
    for (unsigned level = 0; level < TL_TLOG_LEVELS; level++) {
        struct tl_hash *tile = log->tiles[level], spare[TL_TLOG_TILE];
        unsigned count;
        uint64_t n = tl_tlog_open_tile(log->size, level, &count);
        tile[count] = hash;
        if (count + 1 < TL_TLOG_TILE)
            break;
        if (!full(context, level, n, tile))
            return false;
        memcpy(spare, tile, sizeof(spare));
        fold(spare, TL_TLOG_TILE, &hash);
    }
    log->size++;
    return true;
}

/* Puts the complete subtrees of `count` hashes, from the right, before what *root is the root of.
 */
static void join(const struct tl_hash *hashes, unsigned count, struct tl_hash *root, bool *is_empty)
{
    for (unsigned width = 1; width < TL_TLOG_TILE; width *= 2) {
        struct tl_hash spare[TL_TLOG_TILE], left;
        if ((count & width) == 0)
            continue;
        count -= width;
        memcpy(spare, hashes + count, width * sizeof(*spare));
        fold(spare, width, &left);
        if (*is_empty)
            *root = left;
        else
            node_hash(&left, root, root);
        *is_empty = false;
    }
}

void tl_tlog_root(const struct tl_tlog *log, struct tl_hash *root)
{
    bool is_empty = true;
    for (unsigned level = 0; level < TL_TLOG_LEVELS; level++) {
        unsigned count;
        tl_tlog_open_tile(log->size, level, &count);
        join(log->tiles[level], count, root, &is_empty);
    }
    if (is_empty)
        crypto_hash_sha256(root->bytes, NULL, 0);
}

/* ---- hashes by tiles ---- */

/* The hash of leaves [from, from + n): n is a power of two that divides from. */
static bool subtree(const struct tl_tlog_tiles *tiles, uint64_t from, uint64_t n,
                    struct tl_hash *hash, struct tl_error *err)
{
    struct tl_hash tile[TL_TLOG_TILE];
    unsigned level = 0;
    for (; n >= TL_TLOG_TILE; level++) {
        n /= TL_TLOG_TILE;
        from /= TL_TLOG_TILE;
    }
    unsigned first = (unsigned)(from % TL_TLOG_TILE), width = (unsigned)n;
    if (!tiles->read(tiles->context, level, from / TL_TLOG_TILE, first + width, tile, err))
        return false;
    fold(tile + first, width, hash);
    return true;
}

/* The largest power of two below n, which is 2 or more. */
static uint64_t split(uint64_t n)
{
    uint64_t k = 1;
    while (k < n - k)
        k *= 2;
    return k;
}

/* The hash of leaves [from, from + n), a part of the tree as it was made by splits. */
static bool range(const struct tl_tlog_tiles *tiles, uint64_t from, uint64_t n,
                  struct tl_hash *hash, struct tl_error *err)
{
    struct tl_hash parts[TL_TLOG_PROOF_MAX];
    size_t n_parts = 0;
    while ((n & (n - 1)) != 0) {
        uint64_t k = split(n);
        if (!subtree(tiles, from, k, &parts[n_parts++], err))
            return false;
        from += k;
        n -= k;
    }
    if (!subtree(tiles, from, n, hash, err))
        return false;
    while (n_parts > 0)
        node_hash(&parts[--n_parts], hash, hash);
    return true;
}

static bool check_size(uint64_t part, uint64_t size, struct tl_error *err)
{
    return (part <= size && size <= TL_TLOG_SIZE_MAX) ||
           tl_error_set(err, TL_ERR_INVALID, "leaf %llu of a log of %llu leaves",
                        (unsigned long long)part, (unsigned long long)size);
}

/* ---- proofs ---- */

/* They are found from the root down, and told from the leaf up. */
static void reverse(struct tl_tlog_proof *proof)
{
    for (size_t i = 0; i < proof->n / 2; i++) {
        struct tl_hash hash = proof->hashes[i];
        proof->hashes[i] = proof->hashes[proof->n - 1 - i];
        proof->hashes[proof->n - 1 - i] = hash;
    }
}

bool tl_tlog_inclusion_prove(const struct tl_tlog_tiles *tiles, uint64_t index, uint64_t size,
                             struct tl_tlog_proof *proof, struct tl_error *err)
{
    uint64_t from = 0, n = size;
    proof->n = 0;
    if (index >= size || !check_size(index, size, err))
        return check_size(index + 1, size, err);
    while (n > 1) {
        uint64_t k = split(n);
        bool is_left = index < from + k;
        if (!range(tiles, is_left ? from + k : from, is_left ? n - k : k,
                   &proof->hashes[proof->n++], err))
            return false;
        from = is_left ? from : from + k;
        n = is_left ? k : n - k;
    }
    reverse(proof);
    return true;
}

/* As in RFC 9162, 2.1.3.2. */
bool tl_tlog_inclusion_verify(const struct tl_hash *leaf, uint64_t index, uint64_t size,
                              const struct tl_tlog_proof *proof, const struct tl_hash *root)
{
    if (index >= size || proof->n > TL_TLOG_PROOF_MAX)
        return false;
    struct tl_hash hash = *leaf;
    uint64_t fn = index, sn = size - 1;
    for (size_t i = 0; i < proof->n; i++) {
        if (sn == 0)
            return false;
        if ((fn & 1) == 0 && fn != sn) {
            node_hash(&hash, &proof->hashes[i], &hash);
        } else {
            node_hash(&proof->hashes[i], &hash, &hash);
            for (; (fn & 1) == 0 && fn != 0; sn >>= 1)
                fn >>= 1;
        }
        fn >>= 1;
        sn >>= 1;
    }
    return sn == 0 && tl_hash_equal(&hash, root);
}

/* ---- bundles of leaves ---- */

bool tl_bundle_next(const unsigned char **bytes, size_t *length, const char **leaf,
                    size_t *leaf_length)
{
    if (*length < 2)
        return false;
    size_t n = (size_t)tl_get_be(*bytes, 2);
    if (n > *length - 2)
        return false;
    *leaf = (const char *)*bytes + 2;
    *leaf_length = n;
    *bytes += 2 + n;
    *length -= 2 + n;
    return true;
}
