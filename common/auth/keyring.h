/* SPDX-License-Identifier: Apache-2.0 */
/* The keys that sign tickets: the first does, all verify. */
#ifndef TL_KEYRING_H
#define TL_KEYRING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"

#define TL_SIGNING_KEY_BYTES   32
#define TL_REFERENCE_KEY_BYTES 16
#define TL_KEYRING_MAX         16 /* keys of a ring */

struct tl_signing_key {
    uint32_t id;
    unsigned char bytes[TL_SIGNING_KEY_BYTES];
    unsigned char reference[TL_REFERENCE_KEY_BYTES]; /* derived: for codes (reference.h) */
};

struct tl_keyring {
    size_t n;
    struct tl_signing_key keys[TL_KEYRING_MAX]; /* the first signs */
};

/* Reads a key file: a line each `<id: 8 hex digits> <key: 64 hex digits>`, '#' comments. With
 * create, a missing file is made with one random key, mode 0600, safely against other processes
 * doing the same at once. Refuses a file that others can read. */
struct tl_keyring *tl_keyring_load(const char *path, bool create, struct tl_error *err);
void tl_keyring_free(struct tl_keyring **keyring); /* wipes the keys */

/* Tells keys that sign apart, and nothing about them: for operators, who compare workers. */
uint32_t tl_keyring_fingerprint(const struct tl_keyring *keyring);
/* The key with this id, or NULL. */
const struct tl_signing_key *tl_keyring_find(const struct tl_keyring *keyring, uint32_t id);

#endif
