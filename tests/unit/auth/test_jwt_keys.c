/* SPDX-License-Identifier: Apache-2.0 */
/* Key files: what is accepted, what is refused, and the error messages. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/auth/ec_key.h"
#include "common/auth/invite.h"
#include "common/auth/jwt_keys.h"
#include "tests/unit/auth/jwt_forge.h"

#define SECRET_A "a HS256 " FORGE_SECRET_A "\n"
#define SECRET_B "b HS256 " FORGE_SECRET_B "\n"
#define EC_E     "e ES256\n" FORGE_EC_PRIVATE
#define EC_P     "e ES256\n" FORGE_EC_PUBLIC

#define P384                                                                                       \
    "-----BEGIN PRIVATE KEY-----\n"                                                                \
    "MIG2AgEAMBAGByqGSM49AgEGBSuBBAAiBIGeMIGbAgEBBDDA2obyokVjSa+Rglf+\n"                           \
    "SEYJ05jfoJe8PzcVpkr/eGkFOXvGbcDObpNKpXp4/7/3F0ShZANiAAQOrMkeYwm+\n"                           \
    "vjxyX/a6yQmHhcM32CKGD9IJBkLLHBYAO1CPMOKAhQR94Dy5lWo6OhLVyUKFKFPa\n"                           \
    "tce/KYnzafq8IudIK2Pd7MbFojtowGaZ30oucNIeJdue4TG4DrRVdVw=\n"                                   \
    "-----END PRIVATE KEY-----\n"
#define ED25519                                                                                    \
    "-----BEGIN PRIVATE KEY-----\n"                                                                \
    "MC4CAQAwBQYDK2VwBCIEICEzSHyJBFyPn58+envW7fUd+v6O6S2YhWkYnqeX8ap5\n"                           \
    "-----END PRIVATE KEY-----\n"
#define ENCRYPTED                                                                                  \
    "-----BEGIN ENCRYPTED PRIVATE KEY-----\n"                                                      \
    "MIHsMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAiJavOomVkywgICCAAw\n"                           \
    "DAYIKoZIhvcNAgkFADAdBglghkgBZQMEAQIEEB7LRsj1VdrlUv6icu0WpuMEgZDy\n"                           \
    "zgD/1GWDm7X8n0cIA/bzY0kqKgjoYtg9TmVg2mcTb4eMAC+ziukaV3jnLIvBuLfz\n"                           \
    "6PgS15OPM034yXnGp+c4qrAEOdrAApCa/OZeOrlVYzx/NiLFDMQRJ6UI5Bm+atO3\n"                           \
    "OgZLcowXgSKPuG/7PJ8Y40LMsJQ3dbDsJ1dJ81K3i4Cm0Y2vImM9TG4H7fKxFRw=\n"                           \
    "-----END ENCRYPTED PRIVATE KEY-----\n"
/* The public half is that of another key. */
#define MISMATCHED                                                                                 \
    "-----BEGIN PRIVATE KEY-----\n"                                                                \
    "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg/olT9ujEtXj9QOpR\n"                           \
    "gAsjo7s5Zx3eH4xBEMDxyVKoyNehRANCAASUyp7mB+LSRDk6FgeIpPguY6DYNI9S\n"                           \
    "zoWM1AGNFlRg9EfMsw0pP8wq9/6A/31geHRwj+8IooEveaOPsQb2vWMH\n"                                   \
    "-----END PRIVATE KEY-----\n"

static struct tl_jwt_keys *good(const char *text, enum tl_jwt_use use)
{
    struct tl_jwt_keys *keys = forge_keys(text, use);
    assert_non_null(keys);
    return keys;
}

static void test_reads_several(void **state)
{
    (void)state;
    struct tl_jwt_keys *keys = good("# ours\n\n" SECRET_A "  " EC_E "\n" SECRET_B, TL_JWT_SIGN);
    assert_non_null(tl_jwt_keys_find(keys, "a", 1));
    const struct tl_jwt_key *key = tl_jwt_keys_find(keys, "e", 1);
    assert_non_null(key);
    assert_int_equal(key->algorithm, TL_JWT_ES256);
    assert_int_equal(key->ec.x[0], 0x94);
    assert_int_equal(key->ec.y[31], 0x07);
    assert_non_null(key->ec.signer);
    assert_non_null(key->ec.verifier);
    key = tl_jwt_keys_find(keys, "b", 1);
    assert_non_null(key);
    assert_int_equal(key->algorithm, TL_JWT_HS256);
    assert_int_equal(key->secret_length, 32);
    assert_int_equal(key->secret[0], 0xff);
    assert_null(tl_jwt_keys_find(keys, "", 0));
    assert_null(tl_jwt_keys_find(keys, "e\0f", 3));
    assert_null(tl_jwt_keys_find(keys, "ee", 2));
    tl_jwt_keys_free(&keys);
    assert_null(keys);
    tl_jwt_keys_free(&keys);
}

static void test_public_keys(void **state)
{
    (void)state;
    struct tl_jwt_keys *keys = good(EC_P SECRET_A, TL_JWT_VERIFY);
    const struct tl_jwt_key *key = tl_jwt_keys_find(keys, "e", 1);
    assert_null(key->ec.signer);
    assert_non_null(key->ec.verifier);
    tl_jwt_keys_free(&keys);
}

/* A prepared key works more than once, and after a signature that is wrong. */
static void test_signatures(void **state)
{
    (void)state;
    static const char text[] = "header.claims";
    const size_t length = sizeof(text) - 1;
    struct tl_jwt_keys *keys = good(SECRET_A EC_E, TL_JWT_SIGN);
    struct tl_jwt_keys *public_keys = good(EC_P, TL_JWT_VERIFY);
    const struct tl_jwt_key *public_key = tl_jwt_keys_find(public_keys, "e", 1);
    for (size_t i = 0; i < 2; i++) {
        const struct tl_jwt_key *key = tl_jwt_keys_find(keys, i == 0 ? "a" : "e", 1);
        unsigned char signature[TL_JWT_SIGNATURE_MAX];
        for (int round = 0; round < 3; round++) {
            size_t n = tl_jwt_key_sign(key, text, length, signature);
            assert_int_equal(n, key->algorithm == TL_JWT_HS256 ? 32 : 64);
            assert_true(tl_jwt_key_verify(key, text, length, signature, n));
            assert_int_equal(tl_jwt_key_verify(public_key, text, length, signature, n), i == 1);
            assert_false(tl_jwt_key_verify(key, text, length - 1, signature, n));
            assert_false(tl_jwt_key_verify(key, text, length, signature, n - 1));
            signature[round * 10] ^= 1;
            assert_false(tl_jwt_key_verify(key, text, length, signature, n));
        }
        memset(signature, i == 0 ? 0 : 0xff, sizeof(signature)); /* R and S out of bounds */
        assert_false(tl_jwt_key_verify(key, text, length, signature, i == 0 ? 32 : 64));
        memset(signature, 0, sizeof(signature));
        assert_false(tl_jwt_key_verify(key, text, length, signature, i == 0 ? 32 : 64));
    }
    tl_jwt_keys_free(&keys);
    tl_jwt_keys_free(&public_keys);
}

struct refusal {
    const char *text;
    enum tl_jwt_use use;
    const char *message; /* a part of it */
};

static const struct refusal refusals[] = {
    {"", TL_JWT_SIGN, "keys: holds no key"},
    {"# only this\n\n", TL_JWT_SIGN, "keys: holds no key"},
    {"a\n", TL_JWT_SIGN, "keys:1: expected a key id"},
    {"a HS512 " FORGE_SECRET_A "\n", TL_JWT_SIGN, "keys:1: expected a key id"},
    {"a none\n", TL_JWT_SIGN, "keys:1: expected a key id"},
    {"../a HS256 " FORGE_SECRET_A "\n", TL_JWT_SIGN, "keys:1: expected a key id"},
    {"a HS256 " FORGE_SECRET_A " x\n", TL_JWT_SIGN, "keys:1: expected a key id"},
    {"a ES256 " FORGE_SECRET_A "\n", TL_JWT_SIGN, "keys:1: expected a key id"},
    {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa HS256 " FORGE_SECRET_A "\n",
     TL_JWT_SIGN, "keys:1: expected a key id"},
    {"a HS256\n", TL_JWT_SIGN, "keys:1: expected a key of 64 to 128 hex digits"},
    {"\na HS256 00112233\n", TL_JWT_SIGN, "keys:2: expected a key of 64 to 128 hex digits"},
    {"a HS256 " FORGE_SECRET_A "0\n", TL_JWT_SIGN, "keys:1: expected a key of 64"},
    {"a HS256 " FORGE_SECRET_A FORGE_SECRET_A "00\n", TL_JWT_SIGN, "keys:1: expected a key of 64"},
    {"a HS256 x0112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\n", TL_JWT_SIGN,
     "keys:1: expected a key of 64"},
    {SECRET_A SECRET_A, TL_JWT_SIGN, "keys:2: key id a is given twice"},
    {SECRET_A "a ES256\n" FORGE_EC_PRIVATE, TL_JWT_SIGN, "keys:2: key id a is given twice"},
    {"e ES256\n", TL_JWT_SIGN, "keys:1: expected a key in PEM"},
    {"e ES256\n" SECRET_A, TL_JWT_SIGN, "keys:2: expected a key in PEM"},
    {"e ES256\n-----BEGIN PRIVATE KEY-----\nMIGH\n", TL_JWT_SIGN, "keys:3: the key breaks off"},
    {"e ES256\n-----BEGIN PRIVATE KEY-----\nMIGH\n-----END PRIVATE KEY-----\n", TL_JWT_SIGN,
     "keys:1: expected an unencrypted P-256 private key"},
    {"e ES256\n" P384, TL_JWT_SIGN, "keys:1: expected an unencrypted P-256 private key"},
    {"e ES256\n" ED25519, TL_JWT_SIGN, "keys:1: expected an unencrypted P-256 private key"},
    {"e ES256\n" ENCRYPTED, TL_JWT_SIGN, "keys:1: expected an unencrypted P-256 private key"},
    {"e ES256\n" MISMATCHED, TL_JWT_SIGN, "keys:1: expected an unencrypted P-256 private key"},
    {EC_P, TL_JWT_SIGN, "keys:1: expected an unencrypted P-256 private key"},
    {EC_E, TL_JWT_VERIFY, "keys:1: a private key; only the signer may have it"},
    {"e ES256\n" ENCRYPTED, TL_JWT_VERIFY, "keys:1: a private key; only the signer may have it"},
    {"e ES256\n-----BEGIN PUBLIC KEY-----\nMFkw\n-----END PUBLIC KEY-----\n", TL_JWT_VERIFY,
     "keys:1: expected a P-256 public key"},
};

static void test_refuses(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
        struct tl_error err = {0};
        char *copy = strdup(refusals[i].text);
        assert_non_null(copy);
        struct tl_jwt_keys *keys = tl_jwt_keys_parse("keys", copy, refusals[i].use, &err);
        free(copy);
        assert_null(keys);
        assert_int_equal(err.kind, TL_ERR_INVALID);
        if (strstr(err.text, refusals[i].message) != err.text)
            fail_msg("case %zu: \"%s\", not \"%s\"", i, err.text, refusals[i].message);
        assert_null(strstr(err.text, "112233")); /* no part of a key */
    }
}

/* n HS256 keys, a line each. */
static char *many_keys(int n)
{
    enum { LINE = 96 };
    char *text = calloc((size_t)n + 1, LINE);
    assert_non_null(text);
    for (int i = 0; i < n; i++)
        snprintf(text + strlen(text), LINE, "k%d HS256 " FORGE_SECRET_A "\n", i);
    return text;
}

static void test_limits(void **state)
{
    (void)state;
    struct tl_error err = {0};
    char *text = many_keys(TL_JWT_KEYS_MAX);
    struct tl_jwt_keys *keys = good(text, TL_JWT_SIGN);
    tl_jwt_keys_free(&keys);
    free(text);
    text = many_keys(TL_JWT_KEYS_MAX + 1);
    assert_null(tl_jwt_keys_parse("keys", text, TL_JWT_SIGN, &err));
    assert_string_equal(err.text, "keys:17: more than 16 keys");
    free(text);

    /* A block without end, longer than any key. */
    enum { LONG = 8000 };
    static const char start[] = "e ES256\n-----BEGIN PRIVATE KEY-----\n";
    char *endless = calloc(1, sizeof(start) + LONG);
    assert_non_null(endless);
    memcpy(endless, start, sizeof(start) - 1);
    memset(endless + sizeof(start) - 1, 'A', LONG);
    assert_null(tl_jwt_keys_parse("keys", endless, TL_JWT_SIGN, &err));
    assert_string_equal(err.text, "keys:3: too long for a P-256 key");
    free(endless);
}

static void test_signer_is_first_of_algorithm(void **state)
{
    (void)state;
    struct tl_jwt_keys *keys = good(SECRET_B SECRET_A EC_E, TL_JWT_SIGN);
    assert_true(tl_jwt_keys_choose_signer(keys, TL_JWT_HS256));
    assert_string_equal(keys->signer->id, "b");
    assert_true(tl_jwt_keys_choose_signer(keys, TL_JWT_ES256));
    assert_string_equal(keys->signer->id, "e");
    tl_jwt_keys_free(&keys);
    keys = good(SECRET_B, TL_JWT_SIGN);
    assert_false(tl_jwt_keys_choose_signer(keys, TL_JWT_ES256));
    tl_jwt_keys_free(&keys);
}

static void test_disjoint(void **state)
{
    (void)state;
    struct tl_error err = {0};
    struct tl_jwt_keys *passes = good(SECRET_A EC_E, TL_JWT_SIGN);
    struct tl_jwt_keys *others = good(SECRET_B, TL_JWT_VERIFY);
    struct tl_jwt_keys *same_ec = good("x ES256\n" FORGE_EC_PUBLIC, TL_JWT_VERIFY);
    struct tl_jwt_keys *same_secret = good(SECRET_B "x HS256 " FORGE_SECRET_A "\n", TL_JWT_VERIFY);
    struct tl_jwt_keys *none = tl_invite_keys_load("", &err);
    assert_non_null(none);
    assert_false(tl_jwt_keys_choose_signer(none, TL_JWT_HS256));
    assert_true(tl_jwt_keys_disjoint(passes, none, &err));
    assert_true(tl_jwt_keys_disjoint(passes, others, &err));
    assert_false(tl_jwt_keys_disjoint(passes, same_ec, &err));
    assert_non_null(strstr(err.text, "key e and key x are the same"));
    assert_false(tl_jwt_keys_disjoint(passes, same_secret, &err));
    assert_non_null(strstr(err.text, "key a and key x are the same"));
    tl_jwt_keys_free(&passes);
    tl_jwt_keys_free(&others);
    tl_jwt_keys_free(&same_ec);
    tl_jwt_keys_free(&same_secret);
    tl_jwt_keys_free(&none);
}

static void test_missing_file(void **state)
{
    (void)state;
    struct tl_error err = {0};
    assert_null(tl_invite_keys_load("/nonexistent/invite.keys", &err));
    assert_int_equal(err.kind, TL_ERR_SYSTEM);
    assert_non_null(strstr(err.text, "/nonexistent/invite.keys: cannot open"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reads_several), cmocka_unit_test(test_public_keys),
        cmocka_unit_test(test_signatures),    cmocka_unit_test(test_refuses),
        cmocka_unit_test(test_limits),        cmocka_unit_test(test_signer_is_first_of_algorithm),
        cmocka_unit_test(test_disjoint),      cmocka_unit_test(test_missing_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
