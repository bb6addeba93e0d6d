/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "common/auth/secret_file.h"
#include "worker/visit/api_keys.h"

enum { CALLERS_MAX = 64, NAME_MAX_BYTES = 32, KEY_MIN = 32, KEY_MAX = 128 };

/* Only hashes are kept: comparing them in constant time tells nothing about a key, not even its
 * length. */
struct caller {
    char name[NAME_MAX_BYTES + 1];
    unsigned char hash[crypto_generichash_BYTES];
};

struct tl_worker_keys {
    size_t n;
    struct caller callers[CALLERS_MAX];
};

static void hash_key(const char *key, unsigned char hash[crypto_generichash_BYTES])
{
    (void)crypto_generichash(hash, crypto_generichash_BYTES, (const unsigned char *)key,
                             strlen(key), NULL, 0);
}

static bool add(struct tl_worker_keys *keys, const char *line, struct tl_error *err)
{
    size_t name_length = strcspn(line, " \t");
    const char *key = line + name_length + strspn(line + name_length, " \t");
    size_t key_length = strlen(key);
    if (keys->n == CALLERS_MAX)
        return tl_error_set(err, TL_ERR_INVALID, "more than %d keys", CALLERS_MAX);
    if (name_length == 0 || name_length > NAME_MAX_BYTES || key_length < KEY_MIN ||
        key_length > KEY_MAX || strpbrk(key, " \t") != NULL)
        return tl_error_set(err, TL_ERR_INVALID,
                            "expected a name of at most %d characters and a key of %d to %d; "
                            "make one with: openssl rand -hex 32",
                            NAME_MAX_BYTES, KEY_MIN, KEY_MAX);
    struct caller *caller = &keys->callers[keys->n++];
    memcpy(caller->name, line, name_length);
    hash_key(key, caller->hash);
    return true;
}

struct tl_worker_keys *tl_worker_keys_load(const char *path, struct tl_error *err)
{
    size_t length = 0;
    bool missing = false;
    char *text = NULL;
    struct tl_worker_keys *keys = calloc(1, sizeof(*keys));
    if (keys == NULL) {
        tl_error_set(err, TL_ERR_NOMEM, "no memory for the API keys");
        return NULL;
    }
    if (path[0] == '\0')
        return keys;
    text = tl_secret_read(path, &length, &missing, err);
    if (text == NULL && missing)
        return keys;
    bool ok = text != NULL;
    char *rest = text;
    char *line;
    unsigned number = 0;
    while (ok && tl_secret_line(&rest, &line, &number))
        ok = add(keys, line, err) || tl_error_prefix(err, "%s:%u", path, number);
    tl_secret_free(&text, length);
    if (!ok)
        tl_worker_keys_free(&keys);
    return keys;
}

void tl_worker_keys_free(struct tl_worker_keys **keys)
{
    free(*keys);
    *keys = NULL;
}

const char *tl_worker_keys_find(const struct tl_worker_keys *keys, const char *key)
{
    unsigned char hash[crypto_generichash_BYTES];
    const char *name = NULL;
    if (keys->n == 0)
        return NULL;
    hash_key(key, hash);
    for (size_t i = 0; i < keys->n; i++) {
        if (sodium_memcmp(hash, keys->callers[i].hash, sizeof(hash)) == 0)
            name = keys->callers[i].name;
    }
    return name;
}
