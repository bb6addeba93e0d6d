/*
 * Reference codes: how a visitor names their place to the support, `Q5T9-4XDR`.
 *
 * A code is 40 bits in Crockford's base 32 (no I, L, O, U): the last 40 bits of the place's seq
 * under a keyed permutation, a Feistel network of ten rounds (as many as FF1 of NIST SP 800-38G)
 * with SipHash-2-4 as the round function. Its key comes from a ticket key, and the queue's name
 * goes into every round. So nothing is stored for a code: the ticket keys read it back. A seq
 * belongs to one visitor for ever, in every lane and generation, and so does its code, as long as
 * the same key signs.
 *
 * It opens nothing, and without the key it tells neither position nor how many joined. Nearly every
 * code belongs to no place, so that one with a slip of the pen finds no one, not somebody else.
 */
#ifndef TL_REFERENCE_H
#define TL_REFERENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/auth/keyring.h"

#define TL_REFERENCE_MAX 10 /* "Q5T9-4XDR" and a NUL */
/* So many bits of a seq make the code. Seqs that are so far apart share it: 24 days of the time
 * from which they begin (common/wire/place.h). */
#define TL_REFERENCE_BITS 40

/* The code of a place, by the key that signs. */
void tl_reference_write(const struct tl_keyring *keyring, const char *queue, uint64_t seq,
                        char text[TL_REFERENCE_MAX]);
/* What each key of the ring reads from a code: seqs[i] modulo 2^TL_REFERENCE_BITS by the i-th one.
 * Takes small letters, O for 0, I and L for 1, and hyphens and spaces anywhere. Returns the number
 * of keys; 0 when the text is no code. */
size_t tl_reference_read(const struct tl_keyring *keyring, const char *queue, const char *text,
                         uint64_t seqs[TL_KEYRING_MAX]);

#endif
