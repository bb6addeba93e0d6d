/* SPDX-License-Identifier: Apache-2.0 */
/* Leaves and checkpoints as texts: what is written is read again, and nothing else is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/archive/checkpoint.h"
#include "common/archive/leaf.h"

static const unsigned char seed[TL_TRAIL_SEED_BYTES] = {1, 2, 3};

static void a_leaf_is_read_as_it_was_written(void **state)
{
    (void)state;
    struct tl_leaf leaf = {.event = 12, .ms = 1700000000000, .kind = TL_NOTE_LANE};
    struct tl_leaf read;
    struct tl_error err;
    char line[TL_LEAF_MAX + 1];
    unsigned char salt[TL_LEAF_SALT_BYTES];
    leaf.place = tl_place_make(1, 41);
    tl_leaf_salt(seed, 7, 41, salt);
    tl_leaf_who(salt, "anna", 4, leaf.who);
    snprintf(leaf.detail, sizeof(leaf.detail), "0:41");
    size_t length = tl_leaf_write(&leaf, line);
    assert_int_equal(length, strlen(line));
    assert_memory_equal(line, "12 1700000000000 lane 1 41 ", 27);
    assert_true(tl_leaf_read(line, length, &read, &err));
    assert_int_equal(read.event, leaf.event);
    assert_int_equal(read.ms, leaf.ms);
    assert_int_equal(read.kind, leaf.kind);
    assert_int_equal(read.place, leaf.place);
    assert_string_equal(read.who, leaf.who);
}

static void a_leaf_says_who_has_which_place(void **state)
{
    static const char *const lines[] = {
        "1 2 lane 1 5 AAAAAAAAAAAAAAAAAAAAAA -",
        "1 2 lane 1 5 AAAAAAAAAAAAAAAAAAAAAA 0:",
        "1 2 lane 1 5 AAAAAAAAAAAAAAAAAAAAAA 0:05",
        "1 2 lane 1 5 AAAAAAAAAAAAAAAAAAAAAA 16:5",
        "1 2 lane 1 5 AAAAAAAAAAAAAAAAAAAAAA 1:0",
        "1 2 lane 1 5 AAAAAAAAAAAAAAAAAAAAAA 0:5:BBBBBBBBBBBBBBBBBBBBBA",
        "1 2 drawn 1 5 AAAAAAAAAAAAAAAAAAAAAA 1:9",
        "1 2 drawn 1 5 AAAAAAAAAAAAAAAAAAAAAA 1:9:",
        "1 2 drawn 1 5 AAAAAAAAAAAAAAAAAAAAAA 1:9:BBBBBBBBBBBBBBBBBBBBBB",
        "1 2 drawn 1 5 AAAAAAAAAAAAAAAAAAAAAA 1:9:BBBBBBBBBBBBBBBBBBBBBA:"};
    (void)state;
    struct tl_leaf leaf;
    struct tl_error err;
    char who[TL_LEAF_WHO_SIZE];
#define HELD(line)                                                                                 \
    (assert_true(tl_leaf_read(line, strlen(line), &leaf, &err)), tl_leaf_held(&leaf, who))
    assert_int_equal(HELD("1 2 entered 1 5 AAAAAAAAAAAAAAAAAAAAAA -"), tl_place_make(1, 5));
    assert_string_equal(who, "AAAAAAAAAAAAAAAAAAAAAA");
    assert_int_equal(HELD("1 2 lane 1 5 AAAAAAAAAAAAAAAAAAAAAA 0:5"), tl_place_make(0, 5));
    assert_string_equal(who, "AAAAAAAAAAAAAAAAAAAAAA");
    assert_int_equal(HELD("1 2 drawn 1 5 AAAAAAAAAAAAAAAAAAAAAA 1:9:BBBBBBBBBBBBBBBBBBBBBA"),
                     tl_place_make(1, 9));
    assert_string_equal(who, "BBBBBBBBBBBBBBBBBBBBBA");
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
        assert_int_equal(HELD(lines[i]), 0);
#undef HELD
}

static void what_is_no_leaf_is_refused(void **state)
{
    static const char *const lines[] = {
        "",
        "1 2 entered 0 5 AAAAAAAAAAAAAAAAAAAAAA",     /* a word is missing */
        "1 2 entered 0 5 AAAAAAAAAAAAAAAAAAAAAA - -", /* one too many */
        "1 2 entered 0 5 AAAAAAAAAAAAAAAAAAAAAA  -",  /* two spaces */
        "01 2 entered 0 5 AAAAAAAAAAAAAAAAAAAAAA -",  /* a leading zero */
        "1 2 claimed 0 5 AAAAAAAAAAAAAAAAAAAAAA -",   /* not in the trail */
        "1 2 entered 16 5 AAAAAAAAAAAAAAAAAAAAAA -",  /* no such lane */
        "1 2 entered 0 - AAAAAAAAAAAAAAAAAAAAAA -",   /* half a place */
        "1 2 entered 1 0 AAAAAAAAAAAAAAAAAAAAAA -",   /* numbers begin at 1 */
        "1 2 entered 0 5 AAAAAAAAAAAAAAAAAAAAAB -",   /* not the only text of its bytes */
        "1 2 entered 0 5 AAAA -",
        "9007199254740993 2 entered 0 5 AAAAAAAAAAAAAAAAAAAAAA -"};
    (void)state;
    struct tl_leaf leaf;
    struct tl_error err;
    assert_true(tl_leaf_read("1 2 all - - - -", 15, &leaf, &err));
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
        assert_false(tl_leaf_read(lines[i], strlen(lines[i]), &leaf, &err));
}

static void who_stands_there_depends_on_the_place(void **state)
{
    (void)state;
    unsigned char salt[TL_LEAF_SALT_BYTES], other[TL_LEAF_SALT_BYTES];
    char anna[TL_LEAF_WHO_SIZE], there[TL_LEAF_WHO_SIZE], ben[TL_LEAF_WHO_SIZE];
    tl_leaf_salt(seed, 7, 41, salt);
    tl_leaf_salt(seed, 7, 42, other);
    tl_leaf_who(salt, "anna", 4, anna);
    tl_leaf_who(other, "anna", 4, there);
    tl_leaf_who(salt, "ben", 3, ben);
    assert_string_not_equal(anna, there);
    assert_string_not_equal(anna, ben);
}

static void a_checkpoint_is_verified_by_the_key_that_signed_it(void **state)
{
    static const unsigned char other_seed[TL_TRAIL_SEED_BYTES] = {9};
    (void)state;
    struct tl_trail_signer signer, other;
    struct tl_trail_verifier verifier, stranger;
    struct tl_checkpoint read;
    struct tl_error err;
    struct tl_hash root = {{5, 6, 7}};
    char key[TL_VERIFIER_KEY_MAX], text[TL_CHECKPOINT_MAX];
    assert_true(tl_trail_signer_init(&signer, seed, "https://wait.shop.example/x", &err));
    assert_true(tl_trail_signer_init(&other, other_seed, "https://wait.shop.example", &err));
    tl_trail_verifier_write(&signer, key);
    assert_true(tl_trail_verifier_read(key, &verifier, &err));
    assert_string_equal(verifier.name, "wait.shop.example");
    size_t length = tl_checkpoint_write(&signer, "concert", 17, 42, &root, text);
    assert_int_equal(length, strlen(text));
    assert_memory_equal(text, "wait.shop.example/concert/17\n42\n", 32);
    assert_true(tl_checkpoint_read(text, length, &read, &err));
    assert_int_equal(read.size, 42);
    assert_string_equal(read.origin, "wait.shop.example/concert/17");
    assert_true(tl_hash_equal(&read.root, &root));
    assert_true(tl_checkpoint_verify(text, length, &verifier, &err));
    tl_trail_verifier_write(&other, key);
    assert_true(tl_trail_verifier_read(key, &stranger, &err));
    assert_false(tl_checkpoint_verify(text, length, &stranger, &err));
    text[29]++; /* the size */
    assert_false(tl_checkpoint_verify(text, length, &verifier, &err));
    key[strlen(verifier.name) + 1] ^= 1; /* its hash */
    assert_false(tl_trail_verifier_read(key, &stranger, &err));
    assert_false(tl_trail_signer_init(&signer, seed, "/nowhere", &err));
}

static void a_signer_takes_the_name_of_its_own_key_only(void **state)
{
    static const unsigned char other_seed[TL_TRAIL_SEED_BYTES] = {9};
    (void)state;
    struct tl_trail_signer signer, moved, other;
    struct tl_error err;
    char key[TL_VERIFIER_KEY_MAX], after[TL_VERIFIER_KEY_MAX];
    assert_true(tl_trail_signer_init(&signer, seed, "https://wait.shop.example", &err));
    assert_true(tl_trail_signer_init(&moved, seed, "https://queue.example", &err));
    assert_true(tl_trail_signer_init(&other, other_seed, "https://queue.example", &err));
    tl_trail_verifier_write(&signer, key);
    assert_true(tl_trail_signer_rename(&moved, key, &err));
    tl_trail_verifier_write(&moved, after);
    assert_string_equal(after, key);
    assert_false(tl_trail_signer_rename(&other, key, &err));
    assert_false(tl_trail_signer_rename(&moved, "wait.shop.example", &err));
    assert_string_equal(other.name, "queue.example");
    assert_string_equal(moved.name, "wait.shop.example");
}

static void what_is_no_checkpoint_is_refused(void **state)
{
    static const char *const texts[] = {
        "",
        "a/q/1\n5\n",
        "a/q/1\n5\nAAAA\n\nx\n",
        "a/q/1\n-5\nAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n\nx\n",
        "a/q/1\n05\nAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n\nx\n",
        "a/q\033[2J/1\n5\nAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n\nx\n"};
    (void)state;
    struct tl_checkpoint read;
    struct tl_error err;
    static const char good[] = "a/q/1\n5\nAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n\nx\n";
    assert_true(tl_checkpoint_read(good, strlen(good), &read, &err));
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        assert_false(tl_checkpoint_read(texts[i], strlen(texts[i]), &read, &err));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_leaf_is_read_as_it_was_written),
        cmocka_unit_test(a_leaf_says_who_has_which_place),
        cmocka_unit_test(what_is_no_leaf_is_refused),
        cmocka_unit_test(who_stands_there_depends_on_the_place),
        cmocka_unit_test(a_checkpoint_is_verified_by_the_key_that_signed_it),
        cmocka_unit_test(a_signer_takes_the_name_of_its_own_key_only),
        cmocka_unit_test(what_is_no_checkpoint_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
