/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tickets: each visitor's proof of their place.
 *
 * A ticket is base64url (no padding, 63 to 147 characters) of these fields, all big endian:
 *   kind            1 byte: 1 a ticket, 2 a code that hands a place over; neither serves as the
 * other key id          4 generation      8 place           8 issued          4 serial          4
 *   visitor length  1
 *   visitor         1 to 64
 *   MAC             16
 * The MAC is keyed BLAKE2b (libsodium crypto_generichash) over the queue's name, a zero byte and
 * everything before the MAC, so that a ticket of one queue is not valid at another.
 *
 * A pending ticket has no generation yet. In that field it says what opened its join: the digest of
 * an invite, of a solved puzzle or of a token; that a trusted caller did; or nothing.
 *
 * `issued` of a pending ticket and of a code is the Unix time in seconds. A numbered ticket has in
 * 16 bits the Unix time in minutes modulo 2^16, then in 16 bits how far the front of the lane was
 * behind the place (front_code in ticket.c).
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
/* The time of issue of a numbered ticket repeats after this many seconds (45 days). */
#define TL_TICKET_ISSUED_MODULO (UINT32_C(60) << 16)

/* A pending ticket is valid for this many seconds. That is longer than a worker repeats a join that
 * vanishes (five times 30 s at most, worker/feed/outbox.c), and as long as a line commonly keeps
 * the place of a visitor whom it does not see. */
#define TL_TICKET_PENDING_S 600

/* The time of issue is a worker's estimate of the store's clock: it is off by this much at most.
 * Also in common/store/line/invites.lua. */
#define TL_TICKET_CLOCK_S 5

/* Instead of an invite: a trusted caller joined this visitor, or the join is known to be accepted.
 */
#define TL_TICKET_TRUSTED UINT64_C(1)

struct tl_ticket {
    char visitor[TL_VISITOR_MAX + 1];
    uint64_t generation; /* of the queue when the place was given; 0 while pending */
    uint64_t invite;     /* while pending: what opened the join: the digest of the id of an
                            invite, puzzle or token (tl_invite_digest), TL_TICKET_TRUSTED, or 0:
                            nothing. Else 0 */
    tl_place place;      /* while pending: the lane only (seq 0) */
    uint32_t issued;     /* Unix seconds; read from a numbered ticket: whole minutes, modulo
                            TL_TICKET_ISSUED_MODULO */
    uint32_t serial;     /* how often the place was handed over to another device, 0: never */
    /* The front of the place's lane when the ticket was issued: this seq and all before it no
     * longer waited. Read from a ticket it may be lower, never higher; 0: unknown */
    uint64_t front;
    bool outdated; /* not in the text: the place came back under another generation, so the visitor
                      gets a new ticket */
};

struct tl_keyring;

/* Writes the ticket's text, NUL-terminated. */
void tl_ticket_sign(const struct tl_keyring *keyring, const char *queue,
                    const struct tl_ticket *ticket, char text[TL_TICKET_MAX]);
/* False for anything that is not a whole, genuine ticket of this queue. Constant-time in the MAC.
 */
bool tl_ticket_verify(const struct tl_keyring *keyring, const char *queue, const char *text,
                      size_t length, struct tl_ticket *ticket);

/* Could this be a ticket, as far as one sees without a key? */
bool tl_ticket_shaped(const char *text, size_t length);

/* A code that hands this place over: the ticket with the serial that it will have, issued at this
 * Unix time. Written and read as tickets are; it is good for TL_TICKET_CODE_S, and so much longer
 * for the device that redeemed it and may repeat that. */
#define TL_TICKET_CODE_S        120
#define TL_TICKET_CODE_REPEAT_S 600
void tl_ticket_sign_code(const struct tl_keyring *keyring, const char *queue,
                         const struct tl_ticket *ticket, char text[TL_TICKET_MAX]);
bool tl_ticket_verify_code(const struct tl_keyring *keyring, const char *queue, const char *text,
                           size_t length, struct tl_ticket *ticket);

/* Seconds since the ticket was issued, by this Unix time: up to a minute too many where it tells
 * whole minutes. A ticket of more than 45 days may look younger. */
int64_t tl_ticket_age_s(const struct tl_ticket *ticket, int64_t now_s);

/* Random bytes for the ids of visitors, of one thread of one process: so many at a time that the
 * kernel, which is asked for them, is not asked for each visitor. Zeroed before the first use. */
struct tl_visitor_ids {
    unsigned char bytes[32 * 16];
    size_t left; /* bytes that no visitor has yet */
};

/* A fresh visitor id: 128 random bits in base64url, 22 characters. */
void tl_visitor_random(struct tl_visitor_ids *ids, char visitor[TL_VISITOR_MAX + 1]);
/* The visitor id that a sender's Idempotency-Key stands for in this queue: looks like a fresh one,
 * and is the same each time, as long as the first key of the ring is. */
void tl_visitor_keyed(const struct tl_keyring *keyring, const char *queue, const char *sender,
                      const char *key, char visitor[TL_VISITOR_MAX + 1]);

#endif
