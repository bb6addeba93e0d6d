/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/auth/draw.h"
#include "common/auth/hex.h"

static const struct tl_draw_secret one = {.bytes = {1}}, two = {.bytes = {2}};

static struct tl_draw_opening opening(const struct tl_draw_secret *secret, const char *queue,
                                      int64_t ms)
{
    struct tl_draw_opening made;
    tl_draw_opening(secret, queue, ms, &made);
    return made;
}

static void a_seed_is_bound_to_secret_queue_and_opening(void **state)
{
    (void)state;
    const struct tl_draw_opening first = opening(&one, "sale", 1000),
                                 others[] = {opening(&two, "sale", 1000),
                                             opening(&one, "sale2", 1000),
                                             opening(&one, "sale", 1001)};
    const struct tl_draw_opening again = opening(&one, "sale", 1000);
    assert_memory_equal(&first, &again, sizeof(first));
    assert_memory_not_equal(first.seed, first.salt, sizeof(first.seed));
    for (size_t i = 0; i < 3; i++) {
        assert_memory_not_equal(first.seed, others[i].seed, sizeof(first.seed));
        assert_memory_not_equal(first.salt, others[i].salt, sizeof(first.salt));
        assert_memory_not_equal(first.hash, others[i].hash, sizeof(first.hash));
    }
}

/* The values are from Python's hmac and hashlib. */
static void keys_are_hmac_sha_256(void **state)
{
    (void)state;
    unsigned char seed[TL_DRAW_KEY_BYTES], id[TL_DRAW_ID_BYTES], key[TL_DRAW_KEY_BYTES];
    char digits[TL_DRAW_KEY_DIGITS + 1];
    for (size_t i = 0; i < sizeof(seed); i++)
        seed[i] = (unsigned char)i;
    tl_draw_hash(seed, key);
    tl_hex_format(key, sizeof(key), digits);
    assert_string_equal(digits, "630dcd2966c4336691125448bbb25b4ff412a49c732db2c8abc1b8581bd710dd");
    tl_draw_id(seed, "alice", 5, id);
    tl_hex_format(id, sizeof(id), digits);
    assert_string_equal(digits, "6eefad2bed97b6d93ee663d67a44b460");
    tl_draw_key(seed, id, key);
    tl_hex_format(key, sizeof(key), digits);
    assert_string_equal(digits, "6ad743cc23c27bcad28cb1b4047300573006d2ec165bdcd08a58e797f78df737");
}

static void hex_is_exact(void **state)
{
    (void)state;
    unsigned char bytes[2];
    assert_true(tl_hex_parse("0aFF", 4, bytes, 2));
    assert_int_equal(bytes[0], 10);
    assert_int_equal(bytes[1], 255);
    assert_false(tl_hex_parse("0aF", 3, bytes, 2));
    assert_false(tl_hex_parse("0aFF0", 5, bytes, 2));
    assert_false(tl_hex_parse("0aFg", 4, bytes, 2));
    assert_false(tl_hex_parse(" 0aF", 4, bytes, 2));
}

static void the_file_is_made_once_and_kept(void **state)
{
    (void)state;
    char folder[] = "/tmp/test_draw.XXXXXX", path[64];
    struct tl_draw_secret made, read;
    struct tl_error err = {0};
    struct stat info;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/draw.key", folder);
    assert_true(tl_draw_secret_load(path, &made, &err));
    assert_true(tl_draw_secret_load(path, &read, &err));
    assert_memory_equal(&made, &read, sizeof(made));
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0600);
    assert_int_equal(chmod(path, 0644), 0);
    assert_false(tl_draw_secret_load(path, &read, &err));
    assert_non_null(strstr(err.text, "gives others access"));
    (void)unlink(path);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("# nothing\nabc\n", file);
    fclose(file);
    assert_int_equal(chmod(path, 0600), 0);
    assert_false(tl_draw_secret_load(path, &read, &err));
    assert_non_null(strstr(err.text, "expected one line of 64 hex digits"));
    (void)unlink(path);
    (void)rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_seed_is_bound_to_secret_queue_and_opening),
        cmocka_unit_test(keys_are_hmac_sha_256),
        cmocka_unit_test(hex_is_exact),
        cmocka_unit_test(the_file_is_made_once_and_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
