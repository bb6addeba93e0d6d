/* SPDX-License-Identifier: Apache-2.0 */
/* The log: roots and proofs as in RFC 6962, and for every size up to a few hundred. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/archive/tlog.h"
#include "common/auth/hex.h"

enum { SIZES = 530, FULL_MAX = 16 };

/* A log, its full tiles, and the roots it had. */
struct world {
    struct tl_tlog log;
    struct tl_hash full[FULL_MAX][TL_TLOG_TILE], leaves[SIZES], roots[SIZES + 1];
    struct {
        unsigned level;
        uint64_t n;
    } names[FULL_MAX];
    size_t n_full;
};

static bool keep(void *context, unsigned level, uint64_t n, const struct tl_hash *hashes)
{
    struct world *world = context;
    assert_true(world->n_full < FULL_MAX);
    memcpy(world->full[world->n_full], hashes, sizeof(world->full[0]));
    world->names[world->n_full].level = level;
    world->names[world->n_full++].n = n;
    return true;
}

static bool read_tile(void *context, unsigned level, uint64_t n, unsigned count,
                      struct tl_hash *hashes, struct tl_error *err)
{
    const struct world *world = context;
    unsigned open;
    (void)err;
    assert_true(count <= TL_TLOG_TILE);
    if (tl_tlog_open_tile(world->log.size, level, &open) == n) {
        assert_true(count <= open);
        memcpy(hashes, world->log.tiles[level], count * sizeof(*hashes));
        return true;
    }
    for (size_t i = 0; i < world->n_full; i++) {
        if (world->names[i].level == level && world->names[i].n == n) {
            memcpy(hashes, world->full[i], count * sizeof(*hashes));
            return true;
        }
    }
    fail_msg("no tile %u of level %u", (unsigned)n, level);
    return false;
}

static void assert_hash(const struct tl_hash *hash, const char *hex)
{
    unsigned char bytes[TL_TLOG_HASH_BYTES];
    assert_true(tl_hex_parse(hex, strlen(hex), bytes, sizeof(bytes)));
    assert_memory_equal(hash->bytes, bytes, sizeof(bytes));
}

/* The vectors of the tests of Certificate Transparency, which RFC 6962 came with. */
static void roots_are_those_of_the_known_vectors(void **state)
{
    static const struct {
        const char *leaf;
        size_t length;
        const char *root; /* of the log up to this leaf */
    } vectors[] = {
        {"", 0, "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d"},
        {"\0", 1, "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125"},
        {"\x10", 1, "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77"},
        {"\x20\x21", 2, "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7"},
        {"\x30\x31", 2, "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4"},
        {"\x40\x41\x42\x43", 4, "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef"},
        {"\x50\x51\x52\x53\x54\x55\x56\x57", 8,
         "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c"},
        {"\x60\x61\x62\x63\x64\x65\x66\x67\x68\x69\x6a\x6b\x6c\x6d\x6e\x6f", 16,
         "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328"}};
    (void)state;
    struct world *world = calloc(1, sizeof(*world));
    assert_non_null(world);
    struct tl_hash root;
    tl_tlog_root(&world->log, &root);
    assert_hash(&root, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
        struct tl_hash leaf;
        tl_tlog_leaf_hash(vectors[i].leaf, vectors[i].length, &leaf);
        assert_true(tl_tlog_add(&world->log, &leaf, keep, world));
        tl_tlog_root(&world->log, &root);
        assert_hash(&root, vectors[i].root);
    }
    free(world);
}

static struct world *grown(void)
{
    struct world *world = calloc(1, sizeof(*world));
    assert_non_null(world);
    tl_tlog_root(&world->log, &world->roots[0]);
    for (uint64_t i = 0; i < SIZES; i++) {
        tl_tlog_leaf_hash(&i, sizeof(i), &world->leaves[i]);
        assert_true(tl_tlog_add(&world->log, &world->leaves[i], keep, world));
        tl_tlog_root(&world->log, &world->roots[i + 1]);
    }
    return world;
}

static void a_leaf_is_proved_and_no_other_one(void **state)
{
    (void)state;
    struct world *world = grown();
    struct tl_tlog_tiles tiles = {world, read_tile};
    struct tl_error err;
    struct tl_tlog_proof proof;
    for (uint64_t size = 1; size <= SIZES; size += size < 70 ? 1 : 23) {
        for (uint64_t i = 0; i < size; i += size < 70 ? 1 : 7) {
            const struct tl_hash *root = &world->roots[size];
            assert_true(tl_tlog_inclusion_prove(&tiles, i, size, &proof, &err));
            assert_true(tl_tlog_inclusion_verify(&world->leaves[i], i, size, &proof, root));
            assert_false(
                tl_tlog_inclusion_verify(&world->leaves[(i + 1) % SIZES], i, size, &proof, root));
            if (size > 1)
                assert_false(tl_tlog_inclusion_verify(&world->leaves[i], (i + 1) % size, size,
                                                      &proof, root));
            assert_false(
                tl_tlog_inclusion_verify(&world->leaves[i], i, size, &proof, &world->roots[0]));
            proof.n += proof.n == 0 ? 1 : (size_t)-1;
            assert_false(tl_tlog_inclusion_verify(&world->leaves[i], i, size, &proof, root));
        }
    }
    assert_false(tl_tlog_inclusion_prove(&tiles, 5, 5, &proof, &err));
    assert_int_equal(err.kind, TL_ERR_INVALID);
    free(world);
}

static void a_bundle_that_is_cut_off_is_told_apart(void **state)
{
    (void)state;
    static const unsigned char bytes[] = {0, 1, 'a', 0, 0, 0, 3, 'x', 'y'};
    const unsigned char *at = bytes;
    size_t left = sizeof(bytes), length;
    const char *leaf;
    assert_true(tl_bundle_next(&at, &left, &leaf, &length));
    assert_int_equal(length, 1);
    assert_int_equal(leaf[0], 'a');
    assert_true(tl_bundle_next(&at, &left, &leaf, &length));
    assert_int_equal(length, 0);
    assert_false(tl_bundle_next(&at, &left, &leaf, &length));
    assert_int_equal(left, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(roots_are_those_of_the_known_vectors),
        cmocka_unit_test(a_leaf_is_proved_and_no_other_one),
        cmocka_unit_test(a_bundle_that_is_cut_off_is_told_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
