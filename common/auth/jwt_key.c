/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include <sodium.h>

#include "common/auth/jwt_key.h"

_Static_assert(TL_JWT_SIGNATURE_MAX >= crypto_auth_hmacsha256_BYTES, "an HMAC fits");
_Static_assert(TL_JWT_SIGNATURE_MAX == TL_EC_SIGNATURE_BYTES, "an ES256 signature fits");
_Static_assert(TL_EC_HASH_BYTES == crypto_hash_sha256_BYTES, "what is signed");

static void make_mac(const struct tl_jwt_key *key, const char *text, size_t length,
                     unsigned char mac[crypto_auth_hmacsha256_BYTES])
{
    crypto_auth_hmacsha256_state state;
    crypto_auth_hmacsha256_init(&state, key->secret, key->secret_length);
    crypto_auth_hmacsha256_update(&state, (const unsigned char *)text, length);
    crypto_auth_hmacsha256_final(&state, mac);
    sodium_memzero(&state, sizeof(state));
}

size_t tl_jwt_key_sign(const struct tl_jwt_key *key, const char *text, size_t length,
                       unsigned char signature[TL_JWT_SIGNATURE_MAX])
{
    unsigned char hash[crypto_hash_sha256_BYTES];
    if (key->algorithm == TL_JWT_HS256) {
        make_mac(key, text, length, signature);
        return crypto_auth_hmacsha256_BYTES;
    }
    crypto_hash_sha256(hash, (const unsigned char *)text, length);
    return tl_ec_key_sign(&key->ec, hash, signature) ? TL_EC_SIGNATURE_BYTES : 0;
}

bool tl_jwt_key_verify(const struct tl_jwt_key *key, const char *text, size_t length,
                       const unsigned char *signature, size_t signature_length)
{
    unsigned char hash[crypto_hash_sha256_BYTES];
    if (key->algorithm == TL_JWT_HS256) {
        make_mac(key, text, length, hash);
        return signature_length == sizeof(hash) &&
               sodium_memcmp(hash, signature, sizeof(hash)) == 0;
    }
    crypto_hash_sha256(hash, (const unsigned char *)text, length);
    return signature_length == TL_EC_SIGNATURE_BYTES && tl_ec_key_verify(&key->ec, hash, signature);
}
