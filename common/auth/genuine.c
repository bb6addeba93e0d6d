/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "common/auth/genuine.h"

enum { SLOTS = 8192, DIGEST_BYTES = 32 }; /* 256 KiB; a power of two */

struct tl_genuine {
    unsigned char digests[SLOTS][DIGEST_BYTES]; /* all zero: empty */
};

struct tl_genuine *tl_genuine_new(void)
{
    return calloc(1, sizeof(struct tl_genuine));
}

void tl_genuine_free(struct tl_genuine **table)
{
    free(*table);
    *table = NULL;
}

/* Writes the digest of a token and returns its slot. */
static size_t digest_of(const char *text, size_t length, unsigned char digest[DIGEST_BYTES])
{
    /* Fails only for lengths out of bounds; these constants are within them. */
    (void)crypto_generichash(digest, DIGEST_BYTES, (const unsigned char *)text, length, NULL, 0);
    return ((size_t)digest[0] << 8 | digest[1]) % SLOTS;
}

bool tl_genuine_has(const struct tl_genuine *table, const char *text, size_t length)
{
    unsigned char digest[DIGEST_BYTES];
    size_t slot = digest_of(text, length, digest);
    return memcmp(table->digests[slot], digest, sizeof(digest)) == 0;
}

void tl_genuine_add(struct tl_genuine *table, const char *text, size_t length)
{
    unsigned char digest[DIGEST_BYTES];
    size_t slot = digest_of(text, length, digest);
    memcpy(table->digests[slot], digest, sizeof(digest));
}
