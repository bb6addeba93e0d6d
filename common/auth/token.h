/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tokens for operators: "tl_NAME_SECRET", SECRET being 256 random bits in 43 characters of
 * base64url. The store keeps a keyed BLAKE2b of the whole text, so that a reader of the store can
 * neither use a token nor make one. One token is in a file and never in the store: the admin token,
 * for when nothing else works.
 */
#ifndef TL_TOKEN_H
#define TL_TOKEN_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/error.h"

enum {
    TL_TOKEN_NAME_MAX = 32,
    TL_TOKEN_SECRET_DIGITS = 43,
    TL_TOKEN_TEXT_MAX = 3 + TL_TOKEN_NAME_MAX + 1 + TL_TOKEN_SECRET_DIGITS,
    TL_TOKEN_HASH_BYTES = 32,
    TL_TOKEN_HASH_DIGITS = 2 * TL_TOKEN_HASH_BYTES,
    TL_TOKEN_KEY_BYTES = 32,
    TL_ADMIN_TOKEN_MIN = 20,
    TL_ADMIN_TOKEN_MAX = 256,
};

/* What the bearer of the admin token is called in the record of changes; no token has this name. */
#define TL_ADMIN_NAME "admin"

/* What a token allows; each role allows what those before it allow. */
enum tl_token_role { TL_TOKEN_NOTHING, TL_TOKEN_VIEWER, TL_TOKEN_OPERATOR, TL_TOKEN_ADMIN };

/* "viewer", "operator", "admin"; "nothing" for any other value. */
const char *tl_token_role_name(enum tl_token_role role);
/* False for any other name; TL_TOKEN_NOTHING has none. */
bool tl_token_role_parse(const char *name, enum tl_token_role *role);

/* tl_name_valid with TL_TOKEN_NAME_MAX, and not TL_ADMIN_NAME. */
bool tl_token_name_valid(const char *name, size_t length);

struct tl_token_key {
    unsigned char bytes[TL_TOKEN_KEY_BYTES];
};
/* Reads the key file; with create, a missing one is made (tl_secret_load_key). The caller wipes the
 * key. */
bool tl_token_key_load(const char *path, bool create, struct tl_token_key *key,
                       struct tl_error *err);

/* Makes a token of this valid name. The caller wipes the text. */
void tl_token_make(const char *name, char text[TL_TOKEN_TEXT_MAX + 1]);
/* Copies the name out of a text that has the form of a token; false for any other. It proves
 * nothing: compare the hashes. */
bool tl_token_parse(const char *text, size_t length, char name[TL_TOKEN_NAME_MAX + 1]);

struct tl_token_hash {
    unsigned char bytes[TL_TOKEN_HASH_BYTES];
};
void tl_token_hash(const struct tl_token_key *key, const char *text, size_t length,
                   struct tl_token_hash *hash);
/* In constant time. */
bool tl_token_hash_equal(const struct tl_token_hash *a, const struct tl_token_hash *b);

/* The admin token: one line of TL_ADMIN_TOKEN_MIN to TL_ADMIN_TOKEN_MAX printable ASCII characters
 * without space, '#' comments. A missing file is no error: *found is false, and nothing equals it.
 */
struct tl_admin_token {
    bool found;
    struct tl_token_hash hash; /* by a key of this object's own */
    struct tl_token_key key;
};
bool tl_admin_token_load(const char *path, struct tl_admin_token *admin, struct tl_error *err);
/* In a time that depends on the length of text alone. */
bool tl_admin_token_equal(const struct tl_admin_token *admin, const char *text, size_t length);
/* Writes a new file with a random token if there is none; logs that it was made. */
bool tl_admin_token_create(const char *path, struct tl_error *err);

#endif
