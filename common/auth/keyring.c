/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "common/auth/hex.h"
#include "common/auth/keyring.h"
#include "common/auth/secret_file.h"
#include "common/base/big_endian.h"

_Static_assert(TL_SIGNING_KEY_BYTES == crypto_generichash_KEYBYTES, "what libsodium expects");

enum { ID_DIGITS = 8, KEY_DIGITS = 2 * TL_SIGNING_KEY_BYTES };

static bool create_file(const char *path, struct tl_error *err)
{
    char heading[256];
    snprintf(heading, sizeof(heading),
             "# Keys that sign tickets: the first signs, all verify. To rotate, put a new line\n"
             "# above the others and send SIGHUP; remove an old line when its tickets are gone.\n"
             "%08" PRIx32 " ",
             randombytes_random());
    return tl_secret_create_key(path, heading, "a new key that signs tickets", err);
}

/* `<id: 8 hex digits> <key: 64 hex digits>` */
static bool parse_key(const char *line, struct tl_signing_key *key)
{
    unsigned char id[ID_DIGITS / 2];
    if (strlen(line) < ID_DIGITS + 1 || !tl_hex_parse(line, ID_DIGITS, id, sizeof(id)))
        return false;
    const char *digits = line + ID_DIGITS;
    size_t blanks = strspn(digits, " \t");
    digits += blanks;
    key->id = (uint32_t)tl_get_be(id, sizeof(id));
    return blanks > 0 && tl_hex_parse(digits, strlen(digits), key->bytes, sizeof(key->bytes));
}

/* The key itself never goes into a message. */
static bool parse_file(struct tl_keyring *keyring, const char *path, char *text,
                       struct tl_error *err)
{
    static const char purpose[] = "reference code of a place";
    char *line;
    unsigned number = 0;
    while (tl_secret_line(&text, &line, &number)) {
        if (keyring->n == TL_KEYRING_MAX)
            return tl_error_set(err, TL_ERR_INVALID, "%s:%u: more than %d keys", path, number,
                                TL_KEYRING_MAX);
        struct tl_signing_key *key = &keyring->keys[keyring->n];
        if (!parse_key(line, key))
            return tl_error_set(err, TL_ERR_INVALID,
                                "%s:%u: expected an id of %d hex digits and a key of %d hex digits",
                                path, number, ID_DIGITS, KEY_DIGITS);
        if (tl_keyring_find(keyring, key->id) != NULL)
            return tl_error_set(err, TL_ERR_INVALID, "%s:%u: key id %08" PRIx32 " is given twice",
                                path, number, key->id);
        /* A key for another purpose, from which the one that signs cannot be found. */
        (void)crypto_generichash(key->reference, sizeof(key->reference),
                                 (const unsigned char *)purpose, sizeof(purpose), key->bytes,
                                 sizeof(key->bytes));
        keyring->n++;
    }
    return keyring->n > 0 ||
           tl_error_set(err, TL_ERR_INVALID,
                        "%s: holds no key; restore the file from a backup. If the key is lost for "
                        "good, write a line with a new one into it (an id of %d and a key of %d "
                        "random hex digits): then every ticket given until now is refused",
                        path, ID_DIGITS, KEY_DIGITS);
}

struct tl_keyring *tl_keyring_load(const char *path, bool create, struct tl_error *err)
{
    if (create && !create_file(path, err))
        return NULL;
    size_t length = 0;
    char *text = tl_secret_read(path, &length, NULL, err);
    if (text == NULL)
        return NULL;
    struct tl_keyring *keyring = calloc(1, sizeof(*keyring));
    if (keyring == NULL)
        tl_error_set(err, TL_ERR_NOMEM, "no memory for the keys of %s", path);
    else if (!parse_file(keyring, path, text, err))
        tl_keyring_free(&keyring);
    tl_secret_free(&text, length);
    return keyring;
}

void tl_keyring_free(struct tl_keyring **keyring)
{
    if (*keyring == NULL)
        return;
    sodium_memzero(*keyring, sizeof(**keyring));
    free(*keyring);
    *keyring = NULL;
}

uint32_t tl_keyring_fingerprint(const struct tl_keyring *keyring)
{
    static const char purpose[] = "fingerprint of a ticket key";
    unsigned char hash[crypto_generichash_BYTES_MIN];
    crypto_generichash(hash, sizeof(hash), (const unsigned char *)purpose, sizeof(purpose),
                       keyring->keys[0].bytes, TL_SIGNING_KEY_BYTES);
    return (uint32_t)tl_get_be(hash, sizeof(uint32_t));
}

const struct tl_signing_key *tl_keyring_find(const struct tl_keyring *keyring, uint32_t id)
{
    for (size_t i = 0; i < keyring->n; i++) {
        if (keyring->keys[i].id == id)
            return &keyring->keys[i];
    }
    return NULL;
}
