/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The draw of a queue: in which order those stand who joined before the opening.
 *
 * A key file holds one secret for all draws. From it, the queue's name and the time of its opening
 * come two others: the seed, which is secret until the draw is done, and the salt, which is never
 * published. A visitor's draw id is an HMAC of the visitor by the salt, so that nobody can find out
 * from the published list who else was there. The draw key is HMAC-SHA-256 of the draw id by the
 * seed; visitors stand in ascending order of the whole 256 bits. Anyone who knows the seed can
 * compute the keys of a list of draw ids.
 *
 * All of it is the same in every process with the same key file, and after every restart.
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

/* SHA-256 of the seed. */
void tl_draw_hash(const unsigned char seed[TL_DRAW_KEY_BYTES],
                  unsigned char hash[TL_DRAW_KEY_BYTES]);
/* The draw id of a visitor of `length` bytes. */
void tl_draw_id(const unsigned char salt[TL_DRAW_KEY_BYTES], const char *visitor, size_t length,
                unsigned char id[TL_DRAW_ID_BYTES]);
/* The draw key of a draw id. */
void tl_draw_key(const unsigned char seed[TL_DRAW_KEY_BYTES],
                 const unsigned char id[TL_DRAW_ID_BYTES], unsigned char key[TL_DRAW_KEY_BYTES]);

#endif
