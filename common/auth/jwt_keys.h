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

#include "common/base/error.h"

#define TL_JWT_KEY_ID_MAX 64 /* bytes of a kid, without the terminating zero */

enum tl_jwt_algorithm { TL_JWT_HS256, TL_JWT_ES256 };

/* What the keys of a file are for. */
enum tl_jwt_use {
    TL_JWT_SIGN,   /* ES256 keys are private ones */
    TL_JWT_VERIFY, /* ES256 keys are public ones: the private half belongs to somebody else */
};

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

size_t tl_jwt_keys_count(const struct tl_jwt_keys *keys);

/* False, with the two ids, when a key stands in both sets: then a token made for one purpose would
 * pass for the other (RFC 8725, 3.12). To be checked whenever both were loaded. */
bool tl_jwt_keys_disjoint(const struct tl_jwt_keys *a, const struct tl_jwt_keys *b,
                          struct tl_error *err);

#endif
