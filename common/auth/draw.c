/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include <sodium.h>

#include "common/auth/draw.h"
#include "common/auth/secret_file.h"

_Static_assert((int)TL_DRAW_KEY_BYTES == (int)TL_SECRET_KEY_BYTES &&
                   (int)TL_DRAW_KEY_BYTES == (int)crypto_auth_hmacsha256_BYTES,
               "what libsodium expects");

bool tl_draw_parse_hex(const char *digits, size_t length, unsigned char *bytes, size_t n)
{
    size_t parsed = 0;
    const char *end = NULL;
    return length == 2 * n && sodium_hex2bin(bytes, n, digits, length, NULL, &parsed, &end) == 0 &&
           parsed == n && end == digits + length;
}

void tl_draw_format_hex(const unsigned char *bytes, size_t n, char *digits)
{
    sodium_bin2hex(digits, 2 * n + 1, bytes, n);
}

/* ---- the key file ---- */

static bool create_file(const char *path, struct tl_error *err)
{
    static const char comment[] =
        "# The secret of all draws. Every admitter needs the same file. Keep it until the last\n"
        "# opening with a published hash is over.\n";
    return tl_secret_create_key(path, comment, "a new secret of the draws", err);
}

/* The secret itself never goes into a message. */
static bool parse_file(const char *path, char *text, struct tl_draw_secret *secret,
                       struct tl_error *err)
{
    bool found = false;
    char *line;
    for (unsigned number = 1; tl_secret_line(&text, &line); number++) {
        if (*line == '\0')
            continue;
        if (found || !tl_draw_parse_hex(line, strlen(line), secret->bytes, sizeof(secret->bytes)))
            return tl_error_set(err, TL_ERR_INVALID, "%s:%u: expected one line of %d hex digits",
                                path, number, TL_DRAW_KEY_DIGITS);
        found = true;
    }
    return found || tl_error_set(err, TL_ERR_INVALID,
                                 "%s: holds no secret; restore the file from a backup, or remove "
                                 "it: then openings whose hash was published cannot be drawn",
                                 path);
}

bool tl_draw_secret_load(const char *path, struct tl_draw_secret *secret, struct tl_error *err)
{
    if (sodium_init() < 0)
        return tl_error_set(err, TL_ERR_SYSTEM, "libsodium cannot be initialised");
    if (!create_file(path, err))
        return false;
    size_t length = 0;
    char *text = tl_secret_read(path, &length, NULL, err);
    if (text == NULL)
        return false;
    bool ok = parse_file(path, text, secret, err);
    tl_secret_free(&text, length);
    return ok;
}

/* ---- seed, salt, ids, keys ---- */

/* HMAC of "tellerline draw <purpose>\0<queue>\0<opening>" by the secret. */
static void derive(const struct tl_draw_secret *secret, const char *purpose, const char *queue,
                   int64_t opens_at_ms, unsigned char out[TL_DRAW_KEY_BYTES])
{
    char text[160];
    int length = snprintf(text, sizeof(text), "tellerline draw %s%c%s%c%lld", purpose, '\0', queue,
                          '\0', (long long)opens_at_ms);
    crypto_auth_hmacsha256(out, (const unsigned char *)text, (unsigned long long)length,
                           secret->bytes);
}

void tl_draw_opening(const struct tl_draw_secret *secret, const char *queue, int64_t opens_at_ms,
                     struct tl_draw_opening *opening)
{
    derive(secret, "seed", queue, opens_at_ms, opening->seed);
    derive(secret, "salt", queue, opens_at_ms, opening->salt);
    tl_draw_hash(opening->seed, opening->hash);
}

void tl_draw_hash(const unsigned char seed[TL_DRAW_KEY_BYTES],
                  unsigned char hash[TL_DRAW_KEY_BYTES])
{
    crypto_hash_sha256(hash, seed, TL_DRAW_KEY_BYTES);
}

void tl_draw_id(const unsigned char salt[TL_DRAW_KEY_BYTES], const char *visitor, size_t length,
                unsigned char id[TL_DRAW_ID_BYTES])
{
    unsigned char mac[TL_DRAW_KEY_BYTES];
    crypto_auth_hmacsha256(mac, (const unsigned char *)visitor, length, salt);
    memcpy(id, mac, TL_DRAW_ID_BYTES);
}

void tl_draw_key(const unsigned char seed[TL_DRAW_KEY_BYTES],
                 const unsigned char id[TL_DRAW_ID_BYTES], unsigned char key[TL_DRAW_KEY_BYTES])
{
    crypto_auth_hmacsha256(key, id, TL_DRAW_ID_BYTES, seed);
}
