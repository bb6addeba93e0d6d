/* SPDX-License-Identifier: Apache-2.0 */
/* P-256 keys for ES256 (RFC 7518, 3.4) in PEM, as `openssl genpkey` and `openssl pkey` write them.
 */
#ifndef TL_EC_KEY_H
#define TL_EC_KEY_H

#include <stdbool.h>

#include "common/base/error.h"

#define TL_EC_PEM_MAX          512 /* bytes of a new key's PEM, with the terminating zero */
#define TL_EC_COORDINATE_BYTES 32
#define TL_EC_HASH_BYTES       32 /* SHA-256 */
#define TL_EC_SIGNATURE_BYTES  64 /* R and S (RFC 7518, 3.4) */

/* A key prepared for many signatures. Not to be used by two threads at once. */
struct tl_ec_key {
    struct evp_pkey_ctx_st *signer;   /* NULL when only the public half is known */
    struct evp_pkey_ctx_st *verifier; /* of OpenSSL, as the signer */
    unsigned char x[TL_EC_COORDINATE_BYTES], y[TL_EC_COORDINATE_BYTES]; /* big endian */
};

/* Reads a public or an unencrypted private key, and nothing else: not another curve, not a private
 * key whose public half is another's. On failure *key is empty and err says what was expected. */
bool tl_ec_key_read(const char *pem, bool private, struct tl_ec_key *key, struct tl_error *err);
/* Frees what the key holds. A zeroed key is allowed. */
void tl_ec_key_free(struct tl_ec_key *key);

/* Signs a hash, with a private key. False when OpenSSL cannot. */
bool tl_ec_key_sign(const struct tl_ec_key *key, const unsigned char hash[TL_EC_HASH_BYTES],
                    unsigned char signature[TL_EC_SIGNATURE_BYTES]);
/* Is this the key's signature of the hash? */
bool tl_ec_key_verify(const struct tl_ec_key *key, const unsigned char hash[TL_EC_HASH_BYTES],
                      const unsigned char signature[TL_EC_SIGNATURE_BYTES]);

/* A new private key in PEM. The caller wipes it. */
bool tl_ec_key_generate(char pem[TL_EC_PEM_MAX], struct tl_error *err);

#endif
