/* P-256 keys for ES256 (RFC 7518, 3.4) in PEM, as `openssl genpkey` and `openssl pkey` write them.
 */
#ifndef TL_EC_KEY_H
#define TL_EC_KEY_H

#include <stdbool.h>

#include "common/base/error.h"

#define TL_EC_PEM_MAX          512 /* bytes of a key's PEM as written here, with the terminating zero */
#define TL_EC_COORDINATE_BYTES 32

struct tl_ec_key {
    char private_pem[TL_EC_PEM_MAX]; /* PKCS #8; "" when only the public half is known */
    char public_pem[TL_EC_PEM_MAX];  /* SubjectPublicKeyInfo */
    unsigned char x[TL_EC_COORDINATE_BYTES], y[TL_EC_COORDINATE_BYTES]; /* big endian */
};

/* Reads an unencrypted private (or public) key, and nothing else: not another curve, not a private
 * key whose public half is another's. On failure *key is wiped and err says what was expected. */
bool tl_ec_key_read_private(const char *pem, struct tl_ec_key *key, struct tl_error *err);
bool tl_ec_key_read_public(const char *pem, struct tl_ec_key *key, struct tl_error *err);

/* A new private key in PEM. The caller wipes it. */
bool tl_ec_key_generate(char pem[TL_EC_PEM_MAX], struct tl_error *err);

#endif
