/* SPDX-License-Identifier: Apache-2.0 */
/* Invites: signed elsewhere, so everything about them is checked. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/auth/invite.h"
#include "common/auth/jwt.h"
#include "common/auth/jwt_keys.h"
#include "common/auth/pass.h"
#include "tests/unit/auth/jwt_forge.h"

#define NOW INT64_C(1795000000)

#define HEADER    "{\"alg\":\"HS256\",\"kid\":\"shop\"}"
#define CLAIMS(x) "{\"aud\":\"concert\",\"sub\":\"user-7\"" x "}"
#define JTI       ",\"jti\":\"0c9f1c6e\""
#define EXP       ",\"exp\":1795000600"

static struct tl_jwt_keys *invite_keys(void)
{
    struct tl_jwt_keys *keys =
        forge_keys("shop HS256 " FORGE_SECRET_A "\nshop2 ES256\n" FORGE_EC_PUBLIC, TL_JWT_VERIFY);
    assert_non_null(keys);
    return keys;
}

static bool verify(const struct tl_jwt_keys *keys, const char *header, const char *claims,
                   struct tl_invite *invite, struct tl_error *err)
{
    char text[FORGE_TEXT];
    forge(header, claims, text);
    return tl_invite_verify(keys, "concert", text, strlen(text), NOW, invite, err);
}

static void test_accepted(void **state)
{
    (void)state;
    struct tl_jwt_keys *keys = invite_keys();
    struct tl_error err = {0};
    struct tl_invite invite;
    if (!verify(keys, HEADER, CLAIMS(JTI EXP), &invite, &err))
        fail_msg("%s", err.text);
    assert_string_equal(invite.visitor, "user-7");
    assert_string_equal(invite.lane, "");
    assert_string_equal(invite.id, "0c9f1c6e");
    assert_int_equal(invite.expires, NOW + 600);
    assert_int_equal(invite.kept_until, NOW + 660);

    assert_true(verify(keys, "{\"typ\":\"JWT\",\"alg\":\"HS256\",\"kid\":\"shop\"}",
                       CLAIMS(JTI EXP ",\"lane\":\"vip\",\"iss\":\"shop\",\"iat\":1795000000"),
                       &invite, &err));
    assert_string_equal(invite.lane, "vip");
    tl_jwt_keys_free(&keys);
}

static const struct {
    const char *claims;
    const char *message; /* NULL: accepted */
} cases[] = {
    {CLAIMS(EXP), "the invite has no id: jti must be"},
    {CLAIMS(EXP ",\"jti\":\"\""), "the invite has no id: jti must be"},
    {CLAIMS(EXP ",\"jti\":17"), "the invite has no id: jti must be"},
    {CLAIMS(EXP ",\"jti\":\"a b\""), "the invite has no id: jti must be"},
    {CLAIMS(EXP ",\"jti\":\"1234567890123456789012345678901234567890123456789012345678901234\""),
     NULL},
    {CLAIMS(EXP ",\"jti\":\"12345678901234567890123456789012345678901234567890123456789012345\""),
     "the invite has no id: jti must be"},
    {CLAIMS(JTI), "the invite has no end: exp is missing"},
    {CLAIMS(JTI ",\"exp\":1794999970"), "the invite has expired (exp)"},
    {CLAIMS(JTI ",\"exp\":1794999971"), NULL},
    {CLAIMS(JTI ",\"exp\":1795086430"), NULL},
    {CLAIMS(JTI ",\"exp\":1795086431"), "the invite lasts too long: exp is at most 86400 s ahead"},
    {CLAIMS(JTI EXP ",\"nbf\":1795000031"), "the invite is not valid yet (nbf)"},
    {CLAIMS(JTI EXP ",\"iat\":1795000031"), "the invite was issued in the future (iat)"},
    {CLAIMS(JTI EXP ",\"lane\":\"\""), "the invite names no lane"},
    {CLAIMS(JTI EXP ",\"lane\":0"), "the invite names no lane"},
    {CLAIMS(JTI EXP ",\"lane\":null"), "the invite names no lane"},
    {CLAIMS(JTI EXP ",\"lane\":\"v\\nip\""), "the invite names no lane"},
    {CLAIMS(JTI EXP ",\"lane\":\"1234567890123456789012345678901\""), NULL},
    {CLAIMS(JTI EXP ",\"lane\":\"12345678901234567890123456789012\""), "the invite names no lane"},
    {"{\"aud\":\"other\",\"sub\":\"user-7\"" JTI EXP "}", "the invite is for another queue"},
    {"{\"sub\":\"user-7\"" JTI EXP "}", "the invite is for another queue"},
    {"{\"aud\":\"concert\"" JTI EXP "}", "the invite names no visitor"},
    {CLAIMS(JTI EXP ",\"sub\":\"user-8\""), "the invite holds no claims"},
};

static void test_claims(void **state)
{
    (void)state;
    struct tl_jwt_keys *keys = invite_keys();
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tl_error err = {0};
        struct tl_invite invite;
        bool accepted = verify(keys, HEADER, cases[i].claims, &invite, &err);
        const char *message = cases[i].message;
        if (accepted != (message == NULL))
            fail_msg("%s: %s", cases[i].claims, accepted ? "accepted" : err.text);
        if (message != NULL && strncmp(err.text, message, strlen(message)) != 0)
            fail_msg("%s: \"%s\"", cases[i].claims, err.text);
    }
    tl_jwt_keys_free(&keys);
}

static void test_wrong_keys(void **state)
{
    (void)state;
    struct tl_error err = {0};
    struct tl_invite invite;
    struct tl_jwt_keys *keys = invite_keys();
    assert_false(
        verify(keys, "{\"alg\":\"HS256\",\"kid\":\"shop2\"}", CLAIMS(JTI EXP), &invite, &err));
    assert_string_equal(err.text, "the invite names an algorithm (alg) other than that of its key");
    assert_false(
        verify(keys, "{\"alg\":\"none\",\"kid\":\"shop\"}", CLAIMS(JTI EXP), &invite, &err));
    assert_false(
        verify(keys, "{\"alg\":\"ES256\",\"kid\":\"shop2\"}", CLAIMS(JTI EXP), &invite, &err));
    assert_string_equal(err.text,
                        "the invite is not genuine: its signature is not that of its key");
    tl_jwt_keys_free(&keys);

    /* A key id is looked up among the keys held. It names no file. */
    static const char *const paths[] = {"../../etc/passwd", "/dev/null", "./shop",
                                        "file:///dev/null"};
    keys = invite_keys();
    for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
        char header[128];
        snprintf(header, sizeof(header), "{\"alg\":\"HS256\",\"kid\":\"%s\"}", paths[i]);
        assert_false(verify(keys, header, CLAIMS(JTI EXP), &invite, &err));
        assert_string_equal(err.text, "the invite names a key (kid) that is not known here");
    }
    tl_jwt_keys_free(&keys);

    /* No key may sign invites. */
    keys = tl_invite_keys_load("", &err);
    assert_non_null(keys);
    assert_false(verify(keys, HEADER, CLAIMS(JTI EXP), &invite, &err));
    assert_string_equal(err.text, "the invite names a key (kid) that is not known here");
    tl_jwt_keys_free(&keys);
}

/* A public key alone verifies what its private half signed. */
static void test_public_key(void **state)
{
    (void)state;
    struct tl_error err = {0};
    struct tl_invite invite;
    struct tl_jwt_keys *keys = invite_keys();
    struct tl_jwt_keys *shop = forge_keys("shop2 ES256\n" FORGE_EC_PRIVATE, TL_JWT_SIGN);
    assert_non_null(shop);
    assert_true(tl_jwt_keys_choose_signer(shop, TL_JWT_ES256));
    const struct tl_pass pass = {.visitor = "user-7",
                                 .id = "once",
                                 .issued = NOW,
                                 .expires = NOW + 60,
                                 .generation = 1,
                                 .place = 2,
                                 .event = 3};
    char text[TL_PASS_MAX];
    assert_true(tl_pass_sign(shop, "shop", "concert", &pass, text, &err));
    if (!tl_invite_verify(keys, "concert", text, strlen(text), NOW, &invite, &err))
        fail_msg("%s", err.text);
    assert_string_equal(invite.visitor, "user-7");
    assert_string_equal(invite.id, "once");
    tl_jwt_keys_free(&shop);
    tl_jwt_keys_free(&keys);
}

static void test_signed_here(void **state)
{
    (void)state;
    struct tl_error err = {0};
    struct tl_jwt_keys *keys = invite_keys();
    assert_true(tl_jwt_keys_choose_signer(keys, TL_JWT_HS256));
    struct tl_invite invite = {
        .visitor = "user-7", .lane = "vip", .id = "once", .expires = NOW + 60};
    struct tl_invite read;
    char text[TL_JWT_SIZE];
    for (int lane = 1; lane >= 0; lane--) {
        invite.lane[lane == 1 ? 3 : 0] = '\0';
        assert_true(tl_invite_sign(keys->signer, "concert", &invite, text, &err));
        if (!tl_invite_verify(keys, "concert", text, strlen(text), NOW, &read, &err))
            fail_msg("%s", err.text);
        assert_string_equal(read.visitor, "user-7");
        assert_string_equal(read.lane, lane == 1 ? "vip" : "");
        assert_string_equal(read.id, "once");
        assert_int_equal(read.expires, NOW + 60);
        assert_false(read.bypass);
    }
    assert_false(tl_invite_verify(keys, "other", text, strlen(text), NOW, &read, &err));
    tl_jwt_keys_free(&keys);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_accepted),    cmocka_unit_test(test_claims),
        cmocka_unit_test(test_wrong_keys),  cmocka_unit_test(test_public_key),
        cmocka_unit_test(test_signed_here),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
