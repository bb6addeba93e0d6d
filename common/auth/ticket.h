/*
 * Tickets: each visitor's proof of their place, and the keys that sign them.
 *
 * A ticket is base64url (no padding) of
 *   version 1 byte | key id 4 | generation 8 | place 8 | issued 4 (Unix s) | visitor length 1 |
 * visitor | MAC 16 all big endian; the MAC is keyed BLAKE2b (libsodium crypto_generichash) over the
 * queue's name, a zero byte, and everything before the MAC, so a ticket of one queue is worthless
 * at another. 58 to 142 characters.
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

struct tl_keyring; /* signing keys: the first signs, all verify */

/* Reads a key file: a line each `<id: 8 hex digits> <key: 64 hex digits>`, '#' comments. With
 * create, a missing file is made with one random key, mode 0600, safely against other processes
 * doing the same at once. Refuses a file that others can read. */
struct tl_keyring *tl_keyring_load(const char *path, bool create, struct tl_error *err);
void tl_keyring_free(struct tl_keyring **keyring); /* wipes the keys */
size_t tl_keyring_count(const struct tl_keyring *keyring);

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
