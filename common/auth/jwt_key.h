/* SPDX-License-Identifier: Apache-2.0 */
/* One key of a set (common/auth/jwt_keys.h), for the modules that sign, verify and publish. */
#ifndef TL_JWT_KEY_H
#define TL_JWT_KEY_H

#include <stdbool.h>
#include <stddef.h>

#include "common/auth/ec_key.h"
#include "common/auth/jwt_algorithm.h"

#define TL_JWT_KEY_ID_MAX 64 /* bytes of a kid, without the terminating zero */
#define TL_JWT_SECRET_MIN 32 /* bytes */
#define TL_JWT_SECRET_MAX 64

struct tl_jwt_key {
    char id[TL_JWT_KEY_ID_MAX + 1];
    enum tl_jwt_algorithm algorithm;
    unsigned char secret[TL_JWT_SECRET_MAX]; /* HS256; unused bytes are zero */
    size_t secret_length;
    struct tl_ec_key ec; /* ES256 */
};

#define TL_JWT_SIGNATURE_MAX 64 /* bytes */

/* Signs the text. Returns the length of the signature, 0 on failure. HS256 takes a microsecond,
 * ES256 about 60. */
size_t tl_jwt_key_sign(const struct tl_jwt_key *key, const char *text, size_t length,
                       unsigned char signature[TL_JWT_SIGNATURE_MAX]);
/* Is this the key's signature of the text? ES256 takes about 140 microseconds. */
bool tl_jwt_key_verify(const struct tl_jwt_key *key, const char *text, size_t length,
                       const unsigned char *signature, size_t signature_length);

#endif
