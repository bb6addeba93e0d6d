/* Inside of the keyring, for ticket.c only. */
#ifndef TL_KEYRING_H
#define TL_KEYRING_H

#include <stdint.h>

#include <sodium.h>

#include "common/auth/ticket.h"

struct tl_signing_key {
    uint32_t id;
    unsigned char bytes[crypto_generichash_KEYBYTES];
};

/* The key that signs. */
const struct tl_signing_key *tl_keyring_first(const struct tl_keyring *keyring);
/* The key of that id, or NULL. */
const struct tl_signing_key *tl_keyring_find(const struct tl_keyring *keyring, uint32_t id);

#endif
