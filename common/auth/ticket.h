/*
 * Tickets: each visitor's proof of their place.
 *
 * A ticket is base64url (no padding, 58 to 142 characters) of these fields, all big endian:
 *   version         1 byte
 *   key id          4
 *   generation      8
 *   place           8
 *   issued          4 (Unix seconds)
 *   visitor length  1
 *   visitor         1 to 64
 *   MAC             16
 * The MAC is keyed BLAKE2b (libsodium crypto_generichash) over the queue's name, a zero byte and
 * everything before the MAC, so that a ticket of one queue is not valid at another.
 */
#ifndef TL_TICKET_H
#define TL_TICKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/wire/names.h"
#include "common/wire/place.h"

#define TL_TICKET_MAX 160 /* bytes of a ticket's text, with the terminating zero */

struct tl_ticket {
    char visitor[TL_VISITOR_MAX + 1];
    uint64_t generation; /* of the queue when the place was given; 0 while pending */
    tl_place place;      /* while pending: the lane only (seq 0) */
    uint32_t issued;     /* Unix seconds */
};

struct tl_keyring;

/* Writes the ticket's text, NUL-terminated. */
void tl_ticket_sign(const struct tl_keyring *keyring, const char *queue,
                    const struct tl_ticket *ticket, char text[TL_TICKET_MAX]);
/* False for anything that is not a whole, genuine ticket of this queue. Constant-time in the MAC.
 */
bool tl_ticket_verify(const struct tl_keyring *keyring, const char *queue, const char *text,
                      size_t length, struct tl_ticket *ticket);

/* A fresh visitor id: 128 random bits in base64url, 22 characters. */
void tl_visitor_random(char visitor[TL_VISITOR_MAX + 1]);

#endif
