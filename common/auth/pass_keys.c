/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include <sodium.h>

#include "common/auth/hex.h"
#include "common/auth/jwt_key.h"
#include "common/auth/jwt_keys.h"
#include "common/auth/pass_keys.h"
#include "common/auth/secret_file.h"

enum { KEY_ID_BYTES = 4 };

static const char heading[] =
    "# Keys that sign passes: the first of the configured algorithm signs, all verify. To rotate,\n"
    "# add the new key at the end, send SIGHUP, wait until every checker of passes knows it,\n"
    "# move it to the front, send SIGHUP; remove the old key when its passes have expired.\n";

static bool create_file(const char *path, enum tl_jwt_algorithm algorithm, struct tl_error *err)
{
    unsigned char id[KEY_ID_BYTES];
    char id_digits[2 * KEY_ID_BYTES + 1];
    char key[TL_EC_PEM_MAX];
    char text[sizeof(heading) + TL_EC_PEM_MAX + 64];
    bool es256 = algorithm == TL_JWT_ES256;
    randombytes_buf(id, sizeof(id));
    tl_hex_format(id, sizeof(id), id_digits);
    bool made = true;
    if (es256) {
        made = tl_ec_key_generate(key, err);
    } else {
        unsigned char secret[TL_JWT_SECRET_MIN];
        randombytes_buf(secret, sizeof(secret));
        tl_hex_format(secret, sizeof(secret), key);
        sodium_memzero(secret, sizeof(secret));
    }
    if (made) {
        int length =
            snprintf(text, sizeof(text), "%s%s %s%s%s%s", heading, id_digits,
                     tl_jwt_algorithm_name(algorithm), es256 ? "\n" : " ", key, es256 ? "" : "\n");
        made = tl_secret_create(path, text, (size_t)length, "a new key that signs passes", err);
    }
    sodium_memzero(key, sizeof(key));
    sodium_memzero(text, sizeof(text));
    return made;
}

struct tl_jwt_keys *tl_pass_keys_load(const char *path, enum tl_jwt_algorithm algorithm,
                                      bool create, struct tl_error *err)
{
    if (sodium_init() < 0) {
        tl_error_set(err, TL_ERR_SYSTEM, "libsodium cannot be initialised");
        return NULL;
    }
    if (create && !create_file(path, algorithm, err))
        return NULL;
    struct tl_jwt_keys *keys = tl_jwt_keys_load(path, TL_JWT_SIGN, err);
    if (keys != NULL && !tl_jwt_keys_choose_signer(keys, algorithm)) {
        tl_error_set(err, TL_ERR_INVALID,
                     "%s: holds no %s key to sign passes with; add one, or choose the algorithm of "
                     "a key it holds",
                     path, tl_jwt_algorithm_name(algorithm));
        tl_jwt_keys_free(&keys);
    }
    return keys;
}
