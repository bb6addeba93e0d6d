/* SPDX-License-Identifier: Apache-2.0 */
/* The public keys as sites fetch them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <jansson.h>

#include "common/auth/ec_key.h"
#include "common/auth/jwt_keys.h"
#include "tests/unit/auth/jwt_forge.h"

static void check_jwks(const char *file, json_t *expected)
{
    struct tl_jwt_keys *keys = forge_keys(file, TL_JWT_SIGN);
    assert_non_null(keys);
    char *text = tl_jwt_keys_publish(keys, NULL);
    assert_non_null(text);
    json_t *found = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(found);
    assert_true(json_equal(found, expected));
    json_decref(found);
    json_decref(expected);
    free(text);
    tl_jwt_keys_free(&keys);
}

static void test_jwks(void **state)
{
    (void)state;
    check_jwks("a HS256 " FORGE_SECRET_A "\n", json_pack("{s:[]}", "keys"));
    check_jwks("a HS256 " FORGE_SECRET_A "\nb HS256 " FORGE_SECRET_B "\ne ES256\n" FORGE_EC_PRIVATE,
               json_pack("{s:[{s:s, s:s, s:s, s:s, s:s, s:s, s:s}]}", "keys", "kty", "EC", "crv",
                         "P-256", "kid", "e", "use", "sig", "alg", "ES256", "x",
                         "lMqe5gfi0kQ5OhYHiKT4LmOg2DSPUs6FjNQBjRZUYPQ", "y",
                         "R8yzDSk_zCr3_oD_fWB4dHCP7wiigS95o4-xBva9Ywc"));
}

/* A coordinate that begins with a zero byte (one key in 128) keeps its length. */
static void test_jwks_leading_zero(void **state)
{
    (void)state;
    char file[TL_EC_PEM_MAX + 16];
    struct tl_jwt_keys *keys = NULL;
    for (int i = 0; i < 10000; i++) {
        char pem[TL_EC_PEM_MAX];
        assert_true(tl_ec_key_generate(pem, NULL));
        snprintf(file, sizeof(file), "z ES256\n%s", pem);
        keys = forge_keys(file, TL_JWT_SIGN);
        assert_non_null(keys);
        if (tl_jwt_keys_find(keys, "z", 1)->ec.x[0] == 0)
            break;
        tl_jwt_keys_free(&keys);
    }
    assert_non_null(keys);
    char *text = tl_jwt_keys_publish(keys, NULL);
    json_t *set = json_loads(text, 0, NULL);
    const json_t *key = json_array_get(json_object_get(set, "keys"), 0);
    assert_int_equal(json_string_length(json_object_get(key, "x")), 43);
    json_decref(set);
    free(text);
    tl_jwt_keys_free(&keys);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_jwks),
        cmocka_unit_test(test_jwks_leading_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
