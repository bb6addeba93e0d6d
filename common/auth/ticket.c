/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include <sodium.h>

#include "common/auth/base64.h"
#include "common/auth/keyring.h"
#include "common/auth/ticket.h"
#include "common/base/big_endian.h"
#include "common/wire/names.h"

enum {
    TICKET = 1, /* kinds */
    CODE = 2,
    GENERATION_AT = 5, /* behind the kind and the key id */
    PLACE_AT = 13,
    ISSUED_AT = 21,
    SERIAL_AT = 25,
    LENGTH_AT = 29,
    VISITOR_AT = 30,
    MAC_BYTES = 16,
    ID_BYTES = 16, /* of a visitor's id */
    BYTES_MIN = VISITOR_AT + 1 + MAC_BYTES,
    BYTES_MAX = VISITOR_AT + TL_VISITOR_MAX + MAC_BYTES,
};

_Static_assert(TL_BASE64_LENGTH(BYTES_MAX) < TL_TICKET_MAX, "the longest ticket fits");

/* ---- the field `issued` ---- */

enum { FRACTION_BITS = 11, FRACTION_MAX = (1 << FRACTION_BITS) - 1, FRONT_UNKNOWN = 0xFFFF };

/* The distance from the front to the place in 16 bits: 5 of exponent, 11 of fraction. Exact below
 * 2048; beyond, rounded up by less than a thousandth, so that a ticket never claims too much. */
static uint32_t front_code(uint64_t seq, uint64_t front)
{
    if (front == 0)
        return FRONT_UNKNOWN;
    uint64_t distance = front < seq ? seq - front : 0;
    unsigned exponent = 0;
    while ((distance + (UINT64_C(1) << exponent) - 1) >> exponent > FRACTION_MAX)
        exponent++;
    uint64_t fraction = (distance + (UINT64_C(1) << exponent) - 1) >> exponent;
    uint32_t code = (uint32_t)(exponent << FRACTION_BITS | fraction);
    return exponent < 31 ? code : FRONT_UNKNOWN;
}

static uint64_t front_of(uint64_t seq, uint32_t code)
{
    uint64_t distance = (uint64_t)(code & FRACTION_MAX) << (code >> FRACTION_BITS);
    return code != FRONT_UNKNOWN && distance < seq ? seq - distance : 0;
}

/* ---- tickets ---- */

static void make_mac(const struct tl_signing_key *key, const char *queue,
                     const unsigned char *bytes, size_t length, unsigned char mac[MAC_BYTES])
{
    crypto_generichash_state state;
    /* Fails only for lengths out of bounds; these constants are within them. */
    (void)crypto_generichash_init(&state, key->bytes, sizeof(key->bytes), MAC_BYTES);
    (void)crypto_generichash_update(&state, (const unsigned char *)queue, strlen(queue) + 1);
    (void)crypto_generichash_update(&state, bytes, length);
    (void)crypto_generichash_final(&state, mac, MAC_BYTES);
}

static void sign(const struct tl_keyring *keyring, const char *queue,
                 const struct tl_ticket *ticket, int kind, char text[TL_TICKET_MAX])
{
    const struct tl_signing_key *key = &keyring->keys[0];
    unsigned char bytes[BYTES_MAX];
    size_t visitor_length = strnlen(ticket->visitor, TL_VISITOR_MAX);
    uint64_t seq = tl_place_seq(ticket->place);
    uint64_t issued = ticket->issued;
    if (kind == TICKET && seq != 0)
        issued = issued / 60 << 16 | front_code(seq, ticket->front);
    bytes[0] = (unsigned char)kind;
    tl_put_be(bytes + 1, key->id, 4);
    tl_put_be(bytes + GENERATION_AT, seq != 0 ? ticket->generation : ticket->invite, 8);
    tl_put_be(bytes + PLACE_AT, ticket->place, 8);
    tl_put_be(bytes + ISSUED_AT, issued, 4);
    tl_put_be(bytes + SERIAL_AT, ticket->serial, 4);
    bytes[LENGTH_AT] = (unsigned char)visitor_length;
    memcpy(bytes + VISITOR_AT, ticket->visitor, visitor_length);
    size_t length = VISITOR_AT + visitor_length;
    make_mac(key, queue, bytes, length, bytes + length);
    tl_base64_encode(bytes, length + MAC_BYTES, text);
}

void tl_ticket_sign(const struct tl_keyring *keyring, const char *queue,
                    const struct tl_ticket *ticket, char text[TL_TICKET_MAX])
{
    sign(keyring, queue, ticket, TICKET, text);
}

void tl_ticket_sign_code(const struct tl_keyring *keyring, const char *queue,
                         const struct tl_ticket *ticket, char text[TL_TICKET_MAX])
{
    sign(keyring, queue, ticket, CODE, text);
}

/* The bytes of a text of this kind that has the right form. */
static bool read_text(const char *text, size_t length, int kind, unsigned char bytes[BYTES_MAX])
{
    size_t n;
    return tl_base64_decode(text, length, bytes, BYTES_MAX, &n) && n >= BYTES_MIN &&
           bytes[0] == kind && n == (size_t)VISITOR_AT + bytes[LENGTH_AT] + MAC_BYTES;
}

bool tl_ticket_shaped(const char *text, size_t length)
{
    unsigned char bytes[BYTES_MAX];
    return read_text(text, length, TICKET, bytes);
}

static bool is_genuine(const struct tl_keyring *keyring, const char *queue,
                       const unsigned char bytes[BYTES_MAX])
{
    unsigned char mac[MAC_BYTES];
    const char *visitor = (const char *)bytes + VISITOR_AT;
    size_t signed_length = (size_t)VISITOR_AT + bytes[LENGTH_AT];
    const struct tl_signing_key *key = tl_keyring_find(keyring, (uint32_t)tl_get_be(bytes + 1, 4));
    if (key == NULL)
        return false;
    make_mac(key, queue, bytes, signed_length, mac);
    return sodium_memcmp(mac, bytes + signed_length, MAC_BYTES) == 0 &&
           tl_visitor_valid(visitor, bytes[LENGTH_AT]);
}

static bool verify(const struct tl_keyring *keyring, const char *queue, const char *text,
                   size_t length, int kind, struct tl_ticket *ticket)
{
    unsigned char bytes[BYTES_MAX];
    if (!read_text(text, length, kind, bytes) || !is_genuine(keyring, queue, bytes))
        return false;
    uint64_t opened_by = tl_get_be(bytes + GENERATION_AT, 8);
    uint32_t issued = (uint32_t)tl_get_be(bytes + ISSUED_AT, 4);
    *ticket = (struct tl_ticket){
        .place = tl_get_be(bytes + PLACE_AT, 8),
        .issued = issued,
        .serial = (uint32_t)tl_get_be(bytes + SERIAL_AT, 4),
    };
    memcpy(ticket->visitor, bytes + VISITOR_AT, bytes[LENGTH_AT]);
    uint64_t seq = tl_place_seq(ticket->place);
    if (seq == 0)
        ticket->invite = opened_by;
    else
        ticket->generation = opened_by;
    if (kind == TICKET && seq != 0) {
        ticket->issued = (issued >> 16) * 60;
        ticket->front = front_of(seq, issued & 0xFFFF);
    }
    return kind == TICKET || (seq != 0 && ticket->serial > 0);
}

bool tl_ticket_verify(const struct tl_keyring *keyring, const char *queue, const char *text,
                      size_t length, struct tl_ticket *ticket)
{
    return verify(keyring, queue, text, length, TICKET, ticket);
}

bool tl_ticket_verify_code(const struct tl_keyring *keyring, const char *queue, const char *text,
                           size_t length, struct tl_ticket *ticket)
{
    return verify(keyring, queue, text, length, CODE, ticket);
}

int64_t tl_ticket_age_s(const struct tl_ticket *ticket, int64_t now_s)
{
    /* A whole time, as of a pending ticket, is far above the modulus. */
    if (ticket->issued >= TL_TICKET_ISSUED_MODULO)
        return now_s - ticket->issued;
    int64_t age = (now_s - ticket->issued) % TL_TICKET_ISSUED_MODULO;
    return age < 0 ? age + TL_TICKET_ISSUED_MODULO : age;
}

void tl_visitor_random(struct tl_visitor_ids *ids, char visitor[TL_VISITOR_MAX + 1])
{
    if (ids->left == 0) {
        randombytes_buf(ids->bytes, sizeof(ids->bytes));
        ids->left = sizeof(ids->bytes);
    }
    ids->left -= ID_BYTES;
    tl_base64_encode(ids->bytes + ids->left, ID_BYTES, visitor);
}

void tl_visitor_keyed(const struct tl_keyring *keyring, const char *queue, const char *sender,
                      const char *key, char visitor[TL_VISITOR_MAX + 1])
{
    static const unsigned char purpose[crypto_generichash_blake2b_PERSONALBYTES] = "tl idempotent";
    const char *const parts[] = {queue, sender, key};
    unsigned char id[ID_BYTES];
    crypto_generichash_blake2b_state state;
    /* Fails only for lengths out of bounds; these constants are within them. */
    (void)crypto_generichash_blake2b_init_salt_personal(
        &state, keyring->keys[0].bytes, TL_SIGNING_KEY_BYTES, sizeof(id), NULL, purpose);
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        (void)crypto_generichash_blake2b_update(&state, (const unsigned char *)parts[i],
                                                strlen(parts[i]) + 1);
    (void)crypto_generichash_blake2b_final(&state, id, sizeof(id));
    tl_base64_encode(id, sizeof(id), visitor);
}
