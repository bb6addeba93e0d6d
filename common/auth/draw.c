/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include <sodium.h>

#include "common/auth/draw.h"
#include "common/auth/secret_file.h"

_Static_assert((int)TL_DRAW_KEY_BYTES == (int)TL_SECRET_KEY_BYTES &&
                   (int)TL_DRAW_KEY_BYTES == (int)crypto_auth_hmacsha256_BYTES,
               "what libsodium expects");

bool tl_draw_secret_load(const char *path, struct tl_draw_secret *secret, struct tl_error *err)
{
    static const char comment[] =
        "# The secret of all draws. Every admitter needs the same file. Keep it until the last\n"
        "# opening with a published hash is over.\n";
    return tl_secret_load_key(
        path,
        "the secret of the draws (without it, openings whose hash was published "
        "cannot be drawn)",
        comment, secret->bytes, err);
}

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
