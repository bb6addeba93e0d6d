/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys for JSON Web Tokens, each with an id (`kid`) and bound to one algorithm: sets of them in
 * files (docs/integrators/passes.md, "Key files"), what one signs and verifies, and the public
 * halves as a JSON Web Key Set.
 */
#ifndef TL_JWT_KEYS_H
#define TL_JWT_KEYS_H

#include <stdbool.h>
#include <stddef.h>

#include "common/auth/ec_key.h"
#include "common/auth/genuine.h"
#include "common/base/error.h"

#define TL_JWT_KEYS_MAX   16 /* of a set */
#define TL_JWT_KEY_ID_MAX 64 /* bytes of a kid, without the terminating zero */
#define TL_JWT_SECRET_MIN 32 /* bytes */
#define TL_JWT_SECRET_MAX 64

enum tl_jwt_algorithm { TL_JWT_HS256, TL_JWT_ES256 };

/* As in a token's header: "HS256" or "ES256". */
const char *tl_jwt_algorithm_name(enum tl_jwt_algorithm algorithm);

/* Not to be used by two threads at once. */
struct tl_jwt_key {
    char id[TL_JWT_KEY_ID_MAX + 1];
    enum tl_jwt_algorithm algorithm;
    unsigned char secret[TL_JWT_SECRET_MAX]; /* HS256; unused bytes are zero */
    size_t secret_length;
    struct evp_mac_ctx_st *mac; /* HS256: of OpenSSL, with the secret; owned */
    struct tl_ec_key ec;        /* ES256 */
};

#define TL_JWT_SIGNATURE_MAX 64 /* bytes */

/* Signs the text. Returns the length of the signature, 0 on failure. HS256 takes half a
 * microsecond, ES256 about 60. */
size_t tl_jwt_key_sign(const struct tl_jwt_key *key, const char *text, size_t length,
                       unsigned char signature[TL_JWT_SIGNATURE_MAX]);
/* Is this the key's signature of the text? ES256 takes about 140 microseconds. */
bool tl_jwt_key_verify(const struct tl_jwt_key *key, const char *text, size_t length,
                       const unsigned char *signature, size_t signature_length);

/* ---- sets ---- */

/* What the keys of a file are for. */
enum tl_jwt_use {
    TL_JWT_SIGN,   /* ES256 keys are private ones */
    TL_JWT_VERIFY, /* ES256 keys are public ones: another party holds the private half */
};

struct tl_jwt_keys {
    size_t n;
    struct tl_jwt_key keys[TL_JWT_KEYS_MAX];
    const struct tl_jwt_key *signer; /* one of them; NULL until it is chosen */
    struct tl_genuine *genuine;      /* the tokens found genuine with these keys */
    struct tl_known_pass *passes; /* those that pass.c has read; NULL: it remembers none. Owned */
};

/* Reads a key file that only its owner (and group) can read. NULL on failure, with the line at
 * fault; no key ever goes into a message. */
struct tl_jwt_keys *tl_jwt_keys_load(const char *path, enum tl_jwt_use use, struct tl_error *err);
/* The same from text, which is changed; `name` stands for the file in messages. */
struct tl_jwt_keys *tl_jwt_keys_parse(const char *name, char *text, enum tl_jwt_use use,
                                      struct tl_error *err);
/* A set without keys: it verifies nothing. */
struct tl_jwt_keys *tl_jwt_keys_none(struct tl_error *err);
void tl_jwt_keys_free(struct tl_jwt_keys **keys); /* wipes the keys; NULL allowed */

/* The key with this id (length bytes), or NULL. */
const struct tl_jwt_key *tl_jwt_keys_find(const struct tl_jwt_keys *keys, const char *id,
                                          size_t length);

/* Makes the first key of the algorithm the one that signs; false if there is none. */
bool tl_jwt_keys_choose_signer(struct tl_jwt_keys *keys, enum tl_jwt_algorithm algorithm);

/* False, with the two ids, when a key is in both sets: then a token made for one purpose would
 * pass for the other (RFC 8725, 3.12). To be checked whenever both were loaded. */
bool tl_jwt_keys_disjoint(const struct tl_jwt_keys *a, const struct tl_jwt_keys *b,
                          struct tl_error *err);

/* The text for /.well-known/jwks.json (RFC 7517): the public halves of all ES256 keys, including
 * those that do not sign yet. Never a secret, so with HS256 alone the set is empty. The caller
 * frees it. NULL with TL_ERR_NOMEM. */
char *tl_jwt_keys_publish(const struct tl_jwt_keys *keys, struct tl_error *err);

#endif
