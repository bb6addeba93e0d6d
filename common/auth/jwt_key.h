/* Inside of a key set, for the modules that sign, verify and publish. */
#ifndef TL_JWT_KEY_H
#define TL_JWT_KEY_H

#include "common/auth/ec_key.h"
#include "common/auth/jwt_keys.h"

enum { TL_JWT_KEYS_MAX = 16, TL_JWT_SECRET_MIN = 32, TL_JWT_SECRET_MAX = 64 };

struct tl_jwt_key {
    char id[TL_JWT_KEY_ID_MAX + 1];
    enum tl_jwt_algorithm algorithm;
    unsigned char secret[TL_JWT_SECRET_MAX]; /* HS256 */
    size_t secret_length;
    struct tl_ec_key ec; /* ES256 */
};

struct tl_jwt_keys {
    size_t n;
    const struct tl_jwt_key *signer; /* NULL until chosen */
    struct tl_jwt_key keys[TL_JWT_KEYS_MAX];
};

/* "HS256" or "ES256". */
const char *tl_jwt_algorithm_name(enum tl_jwt_algorithm algorithm);

/* The key of that id (length bytes), or NULL. */
const struct tl_jwt_key *tl_jwt_keys_find(const struct tl_jwt_keys *keys, const char *id,
                                          size_t length);

/* The first key of the algorithm signs from now on; false if there is none. */
bool tl_jwt_keys_choose_signer(struct tl_jwt_keys *keys, enum tl_jwt_algorithm algorithm);

#endif
