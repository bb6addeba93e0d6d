/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reference codes: what a visitor tells the support, `Q5T9-4XDR` (docs/operators/admin-api.md).
 *
 * A code is 40 bits in Crockford's base 32 (no I, L, O, U): SipHash-2-4 over the queue's name and
 * the visitor's id, with a key that comes from a ticket key. So nothing is stored for it: who looks
 * for one computes it for every visitor there is. Nearly every code belongs to nobody, so that one
 * with a slip of the pen finds no one, not another visitor.
 */
#ifndef TL_REFERENCE_H
#define TL_REFERENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/auth/keyring.h"

#define TL_REFERENCE_MAX 10 /* "Q5T9-4XDR" and a NUL */
/* Bytes of what has a code, with its NUL; the rest is left out. */
#define TL_REFERENCE_NAME_MAX 96

/* The code of a visitor, by the key that signs. */
void tl_reference_write(const struct tl_keyring *keyring, const char *queue, const char *visitor,
                        char text[TL_REFERENCE_MAX]);
/* The number that a code writes. Takes small letters, O for 0, I and L for 1, and hyphens and
 * spaces anywhere. False: this is no code. */
bool tl_reference_read(const char *text, uint64_t *number);
/* Is that the code of this visitor, by any key of the ring? */
bool tl_reference_is_of(const struct tl_keyring *keyring, const char *queue, const char *visitor,
                        uint64_t number);

#endif
