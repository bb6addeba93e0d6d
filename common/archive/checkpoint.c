/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "common/archive/checkpoint.h"
#include "common/base/big_endian.h"
#include "common/base/origin.h"
#include "common/base/units.h"

#define DASH "\xe2\x80\x94 " /* an em dash, before each signature */

enum {
    ED25519 = 1, /* the algorithm, before the key */
    KEY_BYTES = 1 + TL_TRAIL_PUBLIC_BYTES,
    HASH_BYTES = 4,
    SIGNATURE_BYTES = HASH_BYTES + crypto_sign_BYTES,
    BASE64 = sodium_base64_VARIANT_ORIGINAL
};

/* ---- keys ---- */

/* As golang.org/x/mod/sumdb/note: the first bytes of SHA-256(name "\n" algorithm key). */
static void key_hash(const char *name, const unsigned char public_key[TL_TRAIL_PUBLIC_BYTES],
                     unsigned char hash[HASH_BYTES])
{
    static const unsigned char between[] = {'\n', ED25519};
    unsigned char whole[crypto_hash_sha256_BYTES];
    crypto_hash_sha256_state state;
    crypto_hash_sha256_init(&state);
    crypto_hash_sha256_update(&state, (const unsigned char *)name, strlen(name));
    crypto_hash_sha256_update(&state, between, sizeof(between));
    crypto_hash_sha256_update(&state, public_key, TL_TRAIL_PUBLIC_BYTES);
    crypto_hash_sha256_final(&state, whole);
    memcpy(hash, whole, HASH_BYTES);
}

bool tl_trail_signer_init(struct tl_trail_signer *signer,
                          const unsigned char seed[TL_TRAIL_SEED_BYTES], const char *public_url,
                          struct tl_error *err)
{
    struct tl_origin origin;
    if (!tl_origin_parse(public_url, &origin) || origin.host_length > TL_TRAIL_NAME_MAX)
        return tl_error_set(err, TL_ERR_INVALID,
                            "http.public_url has no host, after which the trail could be named");
    *signer = (struct tl_trail_signer){0};
    memcpy(signer->name, origin.host, origin.host_length);
    crypto_sign_seed_keypair(signer->public_key, signer->secret_key, seed);
    return true;
}

void tl_trail_verifier_write(const struct tl_trail_signer *signer, char text[TL_VERIFIER_KEY_MAX])
{
    unsigned char hash[HASH_BYTES], key[KEY_BYTES] = {ED25519};
    char encoded[sodium_base64_ENCODED_LEN(KEY_BYTES, BASE64)];
    key_hash(signer->name, signer->public_key, hash);
    memcpy(key + 1, signer->public_key, TL_TRAIL_PUBLIC_BYTES);
    sodium_bin2base64(encoded, sizeof(encoded), key, sizeof(key), BASE64);
    snprintf(text, TL_VERIFIER_KEY_MAX, "%s+%08x+%s", signer->name,
             (unsigned)tl_get_be(hash, HASH_BYTES), encoded);
}

/* The whole text, of exactly n bytes. */
static bool decode(const char *text, size_t length, unsigned char *bytes, size_t n)
{
    size_t found;
    return sodium_base642bin(bytes, n, text, length, NULL, &found, NULL, BASE64) == 0 && found == n;
}

bool tl_trail_verifier_read(const char *text, struct tl_trail_verifier *verifier,
                            struct tl_error *err)
{
    unsigned char hash[HASH_BYTES], key[KEY_BYTES];
    char number[2 * HASH_BYTES + 1];
    const char *first = strchr(text, '+'), *second = first != NULL ? strchr(first + 1, '+') : NULL;
    size_t length = first != NULL ? (size_t)(first - text) : 0;
    *verifier = (struct tl_trail_verifier){0};
    bool ok = second != NULL && length > 0 && length <= TL_TRAIL_NAME_MAX &&
              second - first - 1 == 2 * HASH_BYTES &&
              decode(second + 1, strcspn(second + 1, "\r\n"), key, sizeof(key)) &&
              key[0] == ED25519;
    if (!ok)
        return tl_error_set(err, TL_ERR_INVALID,
                            "this is no key that verifies: expected "
                            "NAME+HASH+KEY, with a key of Ed25519");
    memcpy(verifier->name, text, length);
    memcpy(verifier->public_key, key + 1, TL_TRAIL_PUBLIC_BYTES);
    key_hash(verifier->name, verifier->public_key, hash);
    snprintf(number, sizeof(number), "%08x", (unsigned)tl_get_be(hash, HASH_BYTES));
    return strncmp(number, first + 1, 2 * HASH_BYTES) == 0 ||
           tl_error_set(err, TL_ERR_INVALID, "the key and its hash do not belong together");
}

bool tl_trail_signer_rename(struct tl_trail_signer *signer, const char *verifier,
                            struct tl_error *err)
{
    struct tl_trail_verifier found;
    if (!tl_trail_verifier_read(verifier, &found, err))
        return false;
    if (memcmp(found.public_key, signer->public_key, TL_TRAIL_PUBLIC_BYTES) != 0)
        return tl_error_set(err, TL_ERR_INVALID, "it is the key of another signer");
    memcpy(signer->name, found.name, sizeof(signer->name));
    return true;
}

/* ---- checkpoints ---- */

size_t tl_checkpoint_write(const struct tl_trail_signer *signer, const char *queue,
                           uint64_t generation, uint64_t size, const struct tl_hash *root,
                           char text[TL_CHECKPOINT_MAX])
{
    char encoded[sodium_base64_ENCODED_LEN(SIGNATURE_BYTES, BASE64)];
    unsigned char signature[SIGNATURE_BYTES];
    sodium_bin2base64(encoded, sizeof(encoded), root->bytes, TL_TLOG_HASH_BYTES, BASE64);
    size_t length =
        (size_t)snprintf(text, TL_CHECKPOINT_MAX, "%s/%s/%" PRIu64 "\n%" PRIu64 "\n%s\n",
                         signer->name, queue, generation, size, encoded);
    key_hash(signer->name, signer->public_key, signature);
    crypto_sign_detached(signature + HASH_BYTES, NULL, (const unsigned char *)text, length,
                         signer->secret_key);
    sodium_bin2base64(encoded, sizeof(encoded), signature, sizeof(signature), BASE64);
    return length + (size_t)snprintf(text + length, TL_CHECKPOINT_MAX - length, "\n" DASH "%s %s\n",
                                     signer->name, encoded);
}

/* The next line of the text, without its end. False: there is no whole one. */
static bool next_line(const char **text, size_t *length, const char **line, size_t *line_length)
{
    const char *end = memchr(*text, '\n', *length);
    if (end == NULL)
        return false;
    *line = *text;
    *line_length = (size_t)(end - *text);
    *length -= *line_length + 1;
    *text = end + 1;
    return true;
}

/* How long the signed text is: up to the last empty line, which is not part of it. 0: none. */
static size_t signed_length(const char *text, size_t length)
{
    for (size_t i = length; i-- > 1;)
        if (text[i] == '\n' && text[i - 1] == '\n')
            return i;
    return 0;
}

/* So that it can be shown. */
static bool is_printable(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (text[i] < ' ' || text[i] > '~')
            return false;
    return length > 0;
}

bool tl_checkpoint_read(const char *text, size_t length, struct tl_checkpoint *checkpoint,
                        struct tl_error *err)
{
    const char *origin, *size, *root, *rest = text;
    size_t origin_length, size_length, root_length, left = signed_length(text, length);
    char digits[24];
    *checkpoint = (struct tl_checkpoint){0};
    bool ok = length < TL_CHECKPOINT_MAX && memchr(text, '\0', length) == NULL &&
              next_line(&rest, &left, &origin, &origin_length) &&
              next_line(&rest, &left, &size, &size_length) &&
              next_line(&rest, &left, &root, &root_length) && is_printable(origin, origin_length) &&
              size_length > 0 && size_length < sizeof(digits) &&
              (size[0] != '0' || size_length == 1) &&
              decode(root, root_length, checkpoint->root.bytes, TL_TLOG_HASH_BYTES);
    if (ok) {
        memcpy(checkpoint->origin, origin, origin_length);
        snprintf(digits, sizeof(digits), "%.*s", (int)size_length, size);
        ok = tl_number_parse(digits, &checkpoint->size, &(struct tl_error){0}) &&
             checkpoint->size <= TL_TLOG_SIZE_MAX;
    }
    return ok || tl_error_set(err, TL_ERR_INVALID, "this is no checkpoint");
}

bool tl_checkpoint_verify(const char *text, size_t length, const struct tl_trail_verifier *verifier,
                          struct tl_error *err)
{
    unsigned char hash[HASH_BYTES], signature[SIGNATURE_BYTES];
    const size_t name = strlen(verifier->name), dash = strlen(DASH);
    const char *line, *rest = text;
    size_t line_length, whole = signed_length(text, length), left;
    key_hash(verifier->name, verifier->public_key, hash);
    if (whole == 0)
        return tl_error_set(err, TL_ERR_INVALID, "it is not signed");
    rest = text + whole + 1;
    left = length - whole - 1;
    while (next_line(&rest, &left, &line, &line_length)) {
        size_t before = dash + name + 1;
        if (line_length <= before || memcmp(line, DASH, dash) != 0 ||
            memcmp(line + dash, verifier->name, name) != 0 || line[before - 1] != ' ' ||
            !decode(line + before, line_length - before, signature, sizeof(signature)) ||
            memcmp(signature, hash, HASH_BYTES) != 0)
            continue;
        return crypto_sign_verify_detached(signature + HASH_BYTES, (const unsigned char *)text,
                                           whole, verifier->public_key) == 0 ||
               tl_error_set(err, TL_ERR_INVALID, "its signature by %s is false", verifier->name);
    }
    return tl_error_set(err, TL_ERR_INVALID, "it is not signed by the key of %s", verifier->name);
}
