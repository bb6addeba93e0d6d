/* SPDX-License-Identifier: Apache-2.0 */
/* Passes and invites against another implementation of JSON Web Tokens, PyJWT: each side signs, the
 * other verifies (jwt_peer.py is the other side). */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "common/auth/invite.h"
#include "common/auth/jwt_keys.h"
#include "common/auth/pass.h"
#include "tests/unit/auth/jwt_forge.h"
#include "tests/unit/auth/run_program.h"

enum { MISSING_PACKAGE = 77 };

static char folder[64];
static bool peer_is_there;

static int remove_folder(void **state)
{
    (void)state;
    return run_program("rm", "-rf", folder, NULL);
}

static void write_file(const char *name, const char *text)
{
    char path[128];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

/* A pass with the key that is first for the algorithm. */
static void write_pass(struct tl_jwt_keys *keys, enum tl_jwt_algorithm algorithm, const char *name,
                       const struct tl_pass *pass)
{
    struct tl_error err = {0};
    char text[TL_PASS_MAX];
    assert_true(tl_jwt_keys_choose_signer(keys, algorithm));
    if (!tl_pass_sign(keys, "https://wait.example", "concert", pass, text, &err))
        fail_msg("%s", err.text);
    write_file(name, text);
}

static void write_passes(void)
{
    int64_t now = time(NULL);
    const struct tl_pass pass = {.visitor = "\"user\\7\"",
                                 .id = "adm-1",
                                 .issued = now,
                                 .expires = now + 600,
                                 .generation = 1,
                                 .place = 2,
                                 .event = 3};
    char second[TL_EC_PEM_MAX];
    char file[2 * TL_EC_PEM_MAX + 256];
    char expected[256];
    assert_true(tl_ec_key_generate(second, NULL));
    snprintf(file, sizeof(file), "a HS256 %s\ne ES256\n%snext ES256\n%s", FORGE_SECRET_A,
             FORGE_EC_PRIVATE, second);
    struct tl_jwt_keys *keys = forge_keys(file, TL_JWT_SIGN);
    assert_non_null(keys);
    snprintf(expected, sizeof(expected),
             "{\"iss\":\"https://wait.example\",\"aud\":\"concert\",\"sub\":\"\\\"user\\\\7\\\"\","
             "\"jti\":\"adm-1\",\"iat\":%lld,\"exp\":%lld,\"gen\":1,\"place\":2,\"evt\":3}",
             (long long)now, (long long)now + 600);
    write_file("expected.json", expected);
    write_file("secret", FORGE_SECRET_A);
    write_pass(keys, TL_JWT_HS256, "pass.HS256", &pass);
    write_pass(keys, TL_JWT_ES256, "pass.ES256", &pass);
    char *jwks = tl_jwt_keys_publish(keys, NULL);
    assert_non_null(jwks);
    write_file("jwks.json", jwks);
    free(jwks);
    tl_jwt_keys_free(&keys);
}

static void test_passes_elsewhere(void **state)
{
    (void)state;
    write_passes();
    int status = run_program("/usr/bin/python3", "-B", "tests/unit/auth/jwt_peer.py", folder);
    if (status == MISSING_PACKAGE)
        skip();
    assert_int_equal(status, 0);
    peer_is_there = true;
}

static void check_invite(const struct tl_jwt_keys *keys, const char *name)
{
    char path[320];
    char text[4096];
    struct tl_invite invite;
    struct tl_error err = {0};
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    size_t length = fread(text, 1, sizeof(text), file);
    assert_int_equal(fclose(file), 0);
    bool accepted = tl_invite_verify(keys, "concert", text, length, time(NULL), &invite, &err);
    printf("%s: %s\n", name, accepted ? "accepted" : err.text);
    assert_int_equal(accepted, strncmp(name, "accept-", 7) == 0);
    if (accepted) {
        assert_string_equal(invite.visitor, "user-7");
        assert_string_equal(invite.lane, "vip");
        assert_string_equal(invite.id, "0c9f");
    }
}

static void test_invites_from_elsewhere(void **state)
{
    (void)state;
    if (!peer_is_there)
        skip();
    struct tl_error err = {0};
    char path[128];
    snprintf(path, sizeof(path), "%s/invite.keys", folder);
    struct tl_jwt_keys *keys = tl_invite_keys_load(path, &err);
    if (keys == NULL)
        fail_msg("%s", err.text);
    DIR *files = opendir(folder);
    assert_non_null(files);
    int seen = 0;
    for (struct dirent *entry = readdir(files); entry != NULL; entry = readdir(files)) {
        if (strstr(entry->d_name, ".jwt") != NULL) {
            check_invite(keys, entry->d_name);
            seen++;
        }
    }
    closedir(files);
    assert_int_equal(seen, 24);
    tl_jwt_keys_free(&keys);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_passes_elsewhere),
        cmocka_unit_test(test_invites_from_elsewhere),
    };
    snprintf(folder, sizeof(folder), "/tmp/tl-interop-XXXXXX");
    if (mkdtemp(folder) == NULL)
        return 1;
    return cmocka_run_group_tests(tests, NULL, remove_folder);
}
