/* One key of a set (common/auth/jwt_keys.h), for the modules that sign, verify and publish. */
#ifndef TL_JWT_KEY_H
#define TL_JWT_KEY_H

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

#endif
