/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sets of keys for JSON Web Tokens, each key with an id (`kid`) and bound to one algorithm.
 *
 * The file: '#' comments, and for each key either
 *     <kid> HS256 <64 to 128 hex digits>
 * or
 *     <kid> ES256
 *     -----BEGIN PRIVATE KEY----- (or PUBLIC KEY)
 *     ...
 * with a P-256 key in PEM. kid: 1 to 64 of A-Z a-z 0-9 . _ -
 */
#ifndef TL_JWT_KEYS_H
#define TL_JWT_KEYS_H

#include <stdbool.h>
#include <stddef.h>

#include "common/auth/jwt_algorithm.h"
#include "common/base/error.h"

#define TL_JWT_KEYS_MAX 16 /* of a set */

/* What the keys of a file are for. */
enum tl_jwt_use {
    TL_JWT_SIGN,   /* ES256 keys are private ones */
    TL_JWT_VERIFY, /* ES256 keys are public ones: another party holds the private half */
};

struct tl_jwt_genuine;
struct tl_jwt_key;
struct tl_jwt_keys;

/* Reads a key file that only its owner (and group) can read. NULL on failure, with the line at
 * fault; no key ever goes into a message. */
struct tl_jwt_keys *tl_jwt_keys_load(const char *path, enum tl_jwt_use use, struct tl_error *err);
/* The same from text, which is changed; `name` stands for the file in messages. */
struct tl_jwt_keys *tl_jwt_keys_parse(const char *name, char *text, enum tl_jwt_use use,
                                      struct tl_error *err);
/* A set without keys: it verifies nothing. */
struct tl_jwt_keys *tl_jwt_keys_none(struct tl_error *err);
void tl_jwt_keys_free(struct tl_jwt_keys **keys); /* wipes the keys; NULL allowed */

/* The tokens found genuine with these keys. */
struct tl_jwt_genuine *tl_jwt_keys_genuine(const struct tl_jwt_keys *keys);

size_t tl_jwt_keys_count(const struct tl_jwt_keys *keys);
/* The i-th key in the order of the file. */
const struct tl_jwt_key *tl_jwt_keys_at(const struct tl_jwt_keys *keys, size_t i);
/* The key with this id (length bytes), or NULL. */
const struct tl_jwt_key *tl_jwt_keys_find(const struct tl_jwt_keys *keys, const char *id,
                                          size_t length);

/* Makes the first key of the algorithm the one that signs; false if there is none. */
bool tl_jwt_keys_choose_signer(struct tl_jwt_keys *keys, enum tl_jwt_algorithm algorithm);
/* The key that signs; NULL until one is chosen. */
const struct tl_jwt_key *tl_jwt_keys_signer(const struct tl_jwt_keys *keys);

/* False, with the two ids, when a key is in both sets: then a token made for one purpose would
 * pass for the other (RFC 8725, 3.12). To be checked whenever both were loaded. */
bool tl_jwt_keys_disjoint(const struct tl_jwt_keys *a, const struct tl_jwt_keys *b,
                          struct tl_error *err);

#endif
