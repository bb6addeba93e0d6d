/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "common/auth/jwt_genuine.h"

enum { SLOTS = 8192 }; /* 256 KiB; a power of two */

struct tl_jwt_genuine {
    unsigned char digests[SLOTS][TL_JWT_DIGEST_BYTES]; /* all zero: empty */
};

struct tl_jwt_genuine *tl_jwt_genuine_new(void)
{
    return calloc(1, sizeof(struct tl_jwt_genuine));
}

void tl_jwt_genuine_free(struct tl_jwt_genuine **table)
{
    free(*table);
    *table = NULL;
}

void tl_jwt_genuine_digest(const char *text, size_t length,
                           unsigned char digest[TL_JWT_DIGEST_BYTES])
{
    /* Fails only for lengths out of bounds; these constants are within them. */
    (void)crypto_generichash(digest, TL_JWT_DIGEST_BYTES, (const unsigned char *)text, length, NULL,
                             0);
}

static size_t slot_of(const unsigned char digest[TL_JWT_DIGEST_BYTES])
{
    return ((size_t)digest[0] << 8 | digest[1]) % SLOTS;
}

bool tl_jwt_genuine_has(const struct tl_jwt_genuine *table,
                        const unsigned char digest[TL_JWT_DIGEST_BYTES])
{
    return memcmp(table->digests[slot_of(digest)], digest, TL_JWT_DIGEST_BYTES) == 0;
}

void tl_jwt_genuine_add(struct tl_jwt_genuine *table,
                        const unsigned char digest[TL_JWT_DIGEST_BYTES])
{
    memcpy(table->digests[slot_of(digest)], digest, TL_JWT_DIGEST_BYTES);
}
