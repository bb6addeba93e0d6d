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

#include "common/auth/hex.h"
#include "common/auth/secret_file.h"
#include "common/auth/token.h"

#define ADMIN "0123456789abcdefghij"

static void tokens_have_their_form(void **state)
{
    (void)state;
    char text[TL_TOKEN_TEXT_MAX + 1], other[TL_TOKEN_TEXT_MAX + 1], name[TL_TOKEN_NAME_MAX + 1];
    char longest[TL_TOKEN_NAME_MAX + 1];
    tl_token_make("a_b-c", text);
    tl_token_make("a_b-c", other);
    assert_string_not_equal(text, other);
    assert_true(tl_token_parse(text, strlen(text), name));
    assert_string_equal(name, "a_b-c");
    memset(longest, 'n', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = '\0';
    tl_token_make(longest, text);
    assert_int_equal(strlen(text), TL_TOKEN_TEXT_MAX);
    assert_true(tl_token_parse(text, strlen(text), name));
    for (size_t length = 0; length < strlen(text); length++)
        assert_false(tl_token_parse(text, length, name) && strcmp(name, longest) == 0);
    text[TL_TOKEN_TEXT_MAX - 1] = '+';
    assert_false(tl_token_parse(text, strlen(text), name));
}

static void names_and_roles(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "", "admin", "A", "-a", "a b", "a/b", "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"};
    enum tl_token_role role;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_false(tl_token_name_valid(bad[i], strlen(bad[i])));
    assert_true(tl_token_name_valid("administrator", 13));
    for (unsigned i = TL_TOKEN_VIEWER; i <= TL_TOKEN_ADMIN; i++) {
        assert_true(tl_token_role_parse(tl_token_role_name((enum tl_token_role)i), &role));
        assert_int_equal(role, i);
    }
    assert_false(tl_token_role_parse("nothing", &role));
    assert_false(tl_token_role_parse("", &role));
}

/* The value is from Python: hashlib.blake2b(b"tl_jo_x", digest_size=32, key=bytes(range(32))). */
static void hashes_are_keyed_blake2b(void **state)
{
    (void)state;
    struct tl_token_key key, other = {.bytes = {1}};
    struct tl_token_hash hash, again;
    char digits[TL_TOKEN_HASH_DIGITS + 1];
    for (size_t i = 0; i < sizeof(key.bytes); i++)
        key.bytes[i] = (unsigned char)i;
    tl_token_hash(&key, "tl_jo_x", 7, &hash);
    tl_hex_format(hash.bytes, sizeof(hash.bytes), digits);
    assert_string_equal(digits, "bec0126b98b256e65ecd5f9481c3d998b9b4bc4a992594f9e1e9dc046bb00e96");
    assert_true(tl_hex_parse(digits, strlen(digits), again.bytes, sizeof(again.bytes)));
    assert_true(tl_token_hash_equal(&hash, &again));
    tl_token_hash(&other, "tl_jo_x", 7, &again);
    assert_false(tl_token_hash_equal(&hash, &again));
    assert_false(tl_hex_parse(digits, strlen(digits) - 1, again.bytes, sizeof(again.bytes)));
}

static void write_file(const char *path, const char *text, mode_t mode)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(path, mode), 0);
}

static void key_files(void **state)
{
    (void)state;
    char path[64];
    struct tl_token_key key, again;
    struct tl_error err = {0};
    snprintf(path, sizeof(path), "/tmp/test_token.%d", (int)getpid());
    assert_false(tl_token_key_load(path, false, &key, &err));
    assert_true(tl_token_key_load(path, true, &key, &err));
    assert_true(tl_token_key_load(path, false, &again, &err));
    assert_memory_equal(&key, &again, sizeof(key));
    assert_int_equal(chmod(path, 0644), 0);
    assert_false(tl_token_key_load(path, false, &key, &err)); /* others can read it */
    write_file(path, "# no key\n", 0600);
    assert_false(tl_token_key_load(path, true, &key, &err));
    write_file(path, "00\n", 0600);
    assert_false(tl_token_key_load(path, true, &key, &err));
    unlink(path);
}

static void the_admin_token(void **state)
{
    (void)state;
    char path[64];
    struct tl_admin_token admin;
    struct tl_error err = {0};
    snprintf(path, sizeof(path), "/tmp/test_token.%d", (int)getpid());
    assert_true(tl_admin_token_load(path, &admin, &err)); /* there is none */
    assert_false(tl_admin_token_equal(&admin, "", 0));
    assert_false(tl_admin_token_equal(&admin, ADMIN, strlen(ADMIN)));
    write_file(path, "# keep it\n" ADMIN "\n", 0600);
    assert_true(tl_admin_token_load(path, &admin, &err));
    assert_true(tl_admin_token_equal(&admin, ADMIN, strlen(ADMIN)));
    assert_false(tl_admin_token_equal(&admin, ADMIN, strlen(ADMIN) - 1));
    assert_false(tl_admin_token_equal(&admin, "", 0));
    static const char *const bad[] = {"", "short\n", ADMIN " " ADMIN "\n", ADMIN "\n" ADMIN "\n"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        write_file(path, bad[i], 0600);
        assert_false(tl_admin_token_load(path, &admin, &err));
        assert_int_equal(err.kind, TL_ERR_INVALID);
    }
    unlink(path);
}

static void a_line_is_appended(void **state)
{
    (void)state;
    char path[64];
    size_t length;
    struct stat info;
    struct tl_error err = {0};
    snprintf(path, sizeof(path), "/tmp/test_token.%d", (int)getpid());
    assert_true(tl_secret_append(path, "one", "a line", &err)); /* makes the file */
    assert_true(tl_secret_append(path, "two", "a line", &err));
    write_file(path, "one\ntwo", 0640); /* no end of the line */
    assert_true(tl_secret_append(path, "three", "a line", &err));
    char *bytes = tl_secret_read(path, &length, NULL, &err);
    assert_string_equal(bytes, "one\ntwo\nthree\n");
    tl_secret_free(&bytes, length);
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 07777, 0640);
    assert_int_equal(chmod(path, 0644), 0);
    assert_false(tl_secret_append(path, "four", "a line", &err)); /* others can read it */
    unlink(path);
}

/* `sudo tellerline key create` in the folder of a service. */
static void a_file_that_root_makes_belongs_to_the_owner_of_the_folder(void **state)
{
    (void)state;
    char folder[] = "/tmp/test_token.XXXXXX", path[64];
    struct stat info;
    struct tl_error err = {0};
    if (geteuid() != 0)
        skip();
    assert_non_null(mkdtemp(folder));
    assert_int_equal(chown(folder, 1234, 4321), 0);
    snprintf(path, sizeof(path), "%s/api.keys", folder);
    assert_true(tl_secret_append(path, "one", "a line", &err)); /* makes the file */
    assert_true(tl_secret_append(path, "two", "a line", &err));
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_uid, 1234);
    assert_int_equal(info.st_gid, 4321);
    assert_int_equal(info.st_mode & 07777, 0600);
    unlink(path);
    rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens_have_their_form),
        cmocka_unit_test(names_and_roles),
        cmocka_unit_test(hashes_are_keyed_blake2b),
        cmocka_unit_test(key_files),
        cmocka_unit_test(the_admin_token),
        cmocka_unit_test(a_line_is_appended),
        cmocka_unit_test(a_file_that_root_makes_belongs_to_the_owner_of_the_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
