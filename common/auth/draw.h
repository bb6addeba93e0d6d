/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The draw of a queue: in which order those stand who joined before the opening.
 *
 * From one secret for all draws, the queue's name and the time of its opening come two others: the
 * seed, which is secret until the draw is done, and the salt, which is never published. A visitor's
 * draw id is an HMAC of the visitor by the salt, and the draw key is one of the draw id by the
 * seed; visitors stand in ascending order of all its bits (docs/operators/openings.md).
 */
#ifndef TL_DRAW_H
#define TL_DRAW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"

enum {
    TL_DRAW_KEY_BYTES = 32,
    TL_DRAW_ID_BYTES = 16,
    TL_DRAW_KEY_DIGITS = 2 * TL_DRAW_KEY_BYTES,
    TL_DRAW_ID_DIGITS = 2 * TL_DRAW_ID_BYTES,
};

struct tl_draw_secret {
    unsigned char bytes[TL_DRAW_KEY_BYTES];
};

/* Reads the key file; a missing one is made (tl_secret_load_key). The caller wipes the secret. */
bool tl_draw_secret_load(const char *path, struct tl_draw_secret *secret, struct tl_error *err);

struct tl_draw_opening {
    unsigned char seed[TL_DRAW_KEY_BYTES];
    unsigned char salt[TL_DRAW_KEY_BYTES];
    unsigned char hash[TL_DRAW_KEY_BYTES]; /* SHA-256 of the seed: published before the draw */
};

/* Seed, salt and hash of this queue's opening, in Unix ms. */
void tl_draw_opening(const struct tl_draw_secret *secret, const char *queue, int64_t opens_at_ms,
                     struct tl_draw_opening *opening);

void tl_draw_hash(const unsigned char seed[TL_DRAW_KEY_BYTES],
                  unsigned char hash[TL_DRAW_KEY_BYTES]);
void tl_draw_id(const unsigned char salt[TL_DRAW_KEY_BYTES], const char *visitor, size_t length,
                unsigned char id[TL_DRAW_ID_BYTES]);
void tl_draw_key(const unsigned char seed[TL_DRAW_KEY_BYTES],
                 const unsigned char id[TL_DRAW_ID_BYTES], unsigned char key[TL_DRAW_KEY_BYTES]);

#endif
