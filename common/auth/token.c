/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include <sodium.h>

#include "common/auth/secret_file.h"
#include "common/auth/token.h"
#include "common/wire/names.h"

_Static_assert((int)TL_TOKEN_KEY_BYTES == (int)TL_SECRET_KEY_BYTES &&
                   (int)TL_TOKEN_KEY_BYTES == (int)crypto_generichash_KEYBYTES &&
                   (int)TL_TOKEN_HASH_BYTES == (int)crypto_generichash_BYTES,
               "what libsodium expects");

enum { SECRET_BYTES = 32, PREFIX_LENGTH = 3, BASE64 = sodium_base64_VARIANT_URLSAFE_NO_PADDING };

_Static_assert(sodium_base64_ENCODED_LEN(SECRET_BYTES, BASE64) == TL_TOKEN_SECRET_DIGITS + 1,
               "256 bits");

/* ---- roles and names ---- */

static const char *const role_names[] = {"nothing", "viewer", "operator", "admin"};

const char *tl_token_role_name(enum tl_token_role role)
{
    return role_names[role > TL_TOKEN_ADMIN ? TL_TOKEN_NOTHING : role];
}

bool tl_token_role_parse(const char *name, enum tl_token_role *role)
{
    for (unsigned i = TL_TOKEN_VIEWER; i <= TL_TOKEN_ADMIN; i++) {
        if (strcmp(name, role_names[i]) == 0) {
            *role = (enum tl_token_role)i;
            return true;
        }
    }
    return false;
}

bool tl_token_name_valid(const char *name, size_t length)
{
    return tl_name_valid(name, length, TL_TOKEN_NAME_MAX) &&
           (length != strlen(TL_ADMIN_NAME) || memcmp(name, TL_ADMIN_NAME, length) != 0);
}

bool tl_token_key_load(const char *path, bool create, struct tl_token_key *key,
                       struct tl_error *err)
{
    static const char comment[] =
        "# The key of operators' tokens. Every program that checks or makes tokens needs the same\n"
        "# file. Without it, no token is valid.\n";
    return tl_secret_load_key(path, "the key of operators' tokens", create ? comment : NULL,
                              key->bytes, err);
}

/* ---- tokens ---- */

void tl_token_make(const char *name, char text[TL_TOKEN_TEXT_MAX + 1])
{
    unsigned char secret[SECRET_BYTES];
    char digits[TL_TOKEN_SECRET_DIGITS + 1];
    randombytes_buf(secret, sizeof(secret));
    sodium_bin2base64(digits, sizeof(digits), secret, sizeof(secret), BASE64);
    snprintf(text, TL_TOKEN_TEXT_MAX + 1, "tl_%s_%s", name, digits);
    sodium_memzero(secret, sizeof(secret));
    sodium_memzero(digits, sizeof(digits));
}

bool tl_token_parse(const char *text, size_t length, char name[TL_TOKEN_NAME_MAX + 1])
{
    static const char base64[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    const size_t around = PREFIX_LENGTH + 1 + TL_TOKEN_SECRET_DIGITS;
    if (length <= around || length > TL_TOKEN_TEXT_MAX || memcmp(text, "tl_", PREFIX_LENGTH) != 0)
        return false;
    size_t name_length = length - around;
    const char *end = text + PREFIX_LENGTH + name_length;
    if (*end != '_' || !tl_token_name_valid(text + PREFIX_LENGTH, name_length))
        return false;
    for (size_t i = 1; i <= TL_TOKEN_SECRET_DIGITS; i++)
        if (end[i] == '\0' || strchr(base64, end[i]) == NULL)
            return false;
    memcpy(name, text + PREFIX_LENGTH, name_length);
    name[name_length] = '\0';
    return true;
}

void tl_token_hash(const struct tl_token_key *key, const char *text, size_t length,
                   struct tl_token_hash *hash)
{
    crypto_generichash(hash->bytes, sizeof(hash->bytes), (const unsigned char *)text, length,
                       key->bytes, sizeof(key->bytes));
}

bool tl_token_hash_equal(const struct tl_token_hash *a, const struct tl_token_hash *b)
{
    return sodium_memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0;
}

/* ---- the admin token ---- */

bool tl_admin_token_load(const char *path, struct tl_admin_token *admin, struct tl_error *err)
{
    size_t length;
    bool missing = false;
    *admin = (struct tl_admin_token){0};
    char *bytes = tl_secret_read(path, &length, &missing, err);
    if (bytes == NULL)
        return missing;
    const char *line = tl_secret_only_line(bytes);
    admin->found = line != NULL && strlen(line) >= TL_ADMIN_TOKEN_MIN &&
                   tl_printable(line, strlen(line), TL_ADMIN_TOKEN_MAX);
    if (admin->found) {
        randombytes_buf(admin->key.bytes, sizeof(admin->key.bytes));
        tl_token_hash(&admin->key, line, strlen(line), &admin->hash);
    }
    tl_secret_free(&bytes, length);
    return admin->found ||
           tl_error_set(err, TL_ERR_INVALID,
                        "%s: expected one line with the admin token, of %d to %d printable ASCII "
                        "characters without space",
                        path, TL_ADMIN_TOKEN_MIN, TL_ADMIN_TOKEN_MAX);
}

bool tl_admin_token_equal(const struct tl_admin_token *admin, const char *text, size_t length)
{
    struct tl_token_hash hash;
    tl_token_hash(&admin->key, text, length, &hash);
    return tl_token_hash_equal(&hash, &admin->hash) && admin->found;
}

bool tl_admin_token_create(const char *path, struct tl_error *err)
{
    return tl_secret_create_key(path,
                                "# Always an admin's token, also while Redis is away. Keep it for "
                                "emergencies.\n",
                                "a new admin token", err);
}
