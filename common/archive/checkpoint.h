/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checkpoints of a trail (https://c2sp.org/tlog-checkpoint): the size and the root of a log, signed
 * with Ed25519 as in golang.org/x/mod/sumdb/note.
 */
#ifndef TL_CHECKPOINT_H
#define TL_CHECKPOINT_H

#include "common/archive/tlog.h"

enum {
    TL_TRAIL_NAME_MAX = 255,
    TL_TRAIL_SEED_BYTES = 32,
    TL_TRAIL_PUBLIC_BYTES = 32,
    TL_TRAIL_SECRET_BYTES = 64,
    TL_CHECKPOINT_MAX = 2048, /* bytes of one */
    TL_VERIFIER_KEY_MAX = 384 /* with the zero */
};

/* The key that signs, and in whose name. */
struct tl_trail_signer {
    char name[TL_TRAIL_NAME_MAX + 1];
    unsigned char public_key[TL_TRAIL_PUBLIC_BYTES];
    unsigned char secret_key[TL_TRAIL_SECRET_BYTES];
};

struct tl_trail_verifier {
    char name[TL_TRAIL_NAME_MAX + 1];
    unsigned char public_key[TL_TRAIL_PUBLIC_BYTES];
};

struct tl_checkpoint {
    char origin[TL_CHECKPOINT_MAX];
    uint64_t size;
    struct tl_hash root;
};

/* Makes the signer of the seed (secrets.trail_key), in the name of this address's host. The caller
 * wipes it. False: the address has no host. */
bool tl_trail_signer_init(struct tl_trail_signer *signer,
                          const unsigned char seed[TL_TRAIL_SEED_BYTES], const char *public_url,
                          struct tl_error *err);
/* From now on it signs in the name that is in this key, as tl_trail_verifier_write wrote it. False:
 * that key is another one, or none. */
bool tl_trail_signer_rename(struct tl_trail_signer *signer, const char *verifier,
                            struct tl_error *err);
/* Writes the key by which others verify: NAME+HASH+KEY. */
void tl_trail_verifier_write(const struct tl_trail_signer *signer, char text[TL_VERIFIER_KEY_MAX]);
bool tl_trail_verifier_read(const char *text, struct tl_trail_verifier *verifier,
                            struct tl_error *err);

/* Writes the signed checkpoint of this queue, and returns its length. */
size_t tl_checkpoint_write(const struct tl_trail_signer *signer, const char *queue,
                           uint64_t generation, uint64_t size, const struct tl_hash *root,
                           char text[TL_CHECKPOINT_MAX]);
/* Reads one, without looking at its signatures. */
bool tl_checkpoint_read(const char *text, size_t length, struct tl_checkpoint *checkpoint,
                        struct tl_error *err);
/* Has the verifier's key signed this text? */
bool tl_checkpoint_verify(const char *text, size_t length, const struct tl_trail_verifier *verifier,
                          struct tl_error *err);

#endif
