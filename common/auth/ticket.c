/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include <sodium.h>

#include "common/auth/keyring.h"
#include "common/auth/ticket.h"
#include "common/base/big_endian.h"
#include "common/wire/names.h"

enum {
    PLAIN = 1,        /* versions: a ticket */
    HANDED = 2,       /* a ticket of a place that was handed over */
    CODE = 3,         /* a code that hands a place over */
    HEAD_BYTES = 26,  /* version, key id, generation, place, issued, visitor length */
    SERIAL_BYTES = 4, /* after `issued`; not in PLAIN */
    MAC_BYTES = 16,
    BYTES_MIN = HEAD_BYTES + 1 + MAC_BYTES,
    BYTES_MAX = HEAD_BYTES + SERIAL_BYTES + TL_VISITOR_MAX + MAC_BYTES,
    BASE64 = sodium_base64_VARIANT_URLSAFE_NO_PADDING,
};

_Static_assert(sodium_base64_ENCODED_LEN(BYTES_MAX, sodium_base64_VARIANT_URLSAFE_NO_PADDING) <=
                   TL_TICKET_MAX,
               "the longest ticket fits");

/* ---- the field `issued` ---- */

#define NUMBERED (UINT32_C(1) << 31)

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

static uint32_t issued_field(const struct tl_ticket *ticket)
{
    uint64_t seq = tl_place_seq(ticket->place);
    if (seq == 0)
        return ticket->issued;
    return NUMBERED | (ticket->issued / 60 & 0x7FFF) << 16 | front_code(seq, ticket->front);
}

static void read_issued(struct tl_ticket *ticket, uint32_t field)
{
    uint64_t seq = tl_place_seq(ticket->place);
    bool numbered = (field & NUMBERED) != 0 && seq != 0;
    ticket->issued = numbered ? (field >> 16 & 0x7FFF) * 60 : field;
    ticket->front = numbered ? front_of(seq, field & 0xFFFF) : 0;
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
                 const struct tl_ticket *ticket, int version, char text[TL_TICKET_MAX])
{
    const struct tl_signing_key *key = tl_keyring_first(keyring);
    unsigned char bytes[BYTES_MAX];
    size_t visitor_length = strnlen(ticket->visitor, TL_VISITOR_MAX);
    bytes[0] = (unsigned char)version;
    tl_put_be(bytes + 1, key->id, 4);
    tl_put_be(bytes + 5, tl_place_seq(ticket->place) != 0 ? ticket->generation : ticket->invite, 8);
    tl_put_be(bytes + 13, ticket->place, 8);
    tl_put_be(bytes + 21, version == CODE ? ticket->issued : issued_field(ticket), 4);
    size_t at = 25;
    if (version != PLAIN) {
        tl_put_be(bytes + at, ticket->serial, SERIAL_BYTES);
        at += SERIAL_BYTES;
    }
    bytes[at++] = (unsigned char)visitor_length;
    memcpy(bytes + at, ticket->visitor, visitor_length);
    size_t length = at + visitor_length;
    make_mac(key, queue, bytes, length, bytes + length);
    sodium_bin2base64(text, TL_TICKET_MAX, bytes, length + MAC_BYTES, BASE64);
}

void tl_ticket_sign(const struct tl_keyring *keyring, const char *queue,
                    const struct tl_ticket *ticket, char text[TL_TICKET_MAX])
{
    sign(keyring, queue, ticket, ticket->serial == 0 ? PLAIN : HANDED, text);
}

void tl_ticket_sign_code(const struct tl_keyring *keyring, const char *queue,
                         const struct tl_ticket *ticket, char text[TL_TICKET_MAX])
{
    sign(keyring, queue, ticket, CODE, text);
}

/* The values of the characters from '-' to 'z' in base64url; NO: not a digit. */
enum { NO = 64 };
static const unsigned char digit_values['z' - '-' + 1] = {
    62, NO, NO, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, NO, NO, NO, NO, NO, NO, NO, /* - 0 9 */
    0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16, 17, 18, 19, /* A T */
    20, 21, 22, 23, 24, 25, NO, NO, NO, NO, 63, NO, 26, 27, 28, 29, 30, 31, 32, 33, /* U Z _ a h */
    34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51,         /* i z */
};

static unsigned digit_value(char character)
{
    unsigned digit = (unsigned)(unsigned char)character - '-';
    return digit < sizeof(digit_values) ? digit_values[digit] : NO;
}

/* Accepts only the canonical text of the bytes: unused bits must be zero. Libsodium's decoder runs
 * in constant time and takes several times as long. That protects nothing here, as the text comes
 * from the client itself. (In 1.0.18 it also takes bytes above 127 for '_'.) */
static bool decode(const char *text, size_t length, unsigned char bytes[BYTES_MAX], size_t *n)
{
    size_t i = 0, rest = length % 4;
    *n = 0;
    if (length >= TL_TICKET_MAX || length * 6 / 8 > BYTES_MAX || rest == 1)
        return false;
    for (; i + 4 <= length; i += 4) {
        unsigned a = digit_value(text[i]), b = digit_value(text[i + 1]);
        unsigned c = digit_value(text[i + 2]), d = digit_value(text[i + 3]);
        if (((a | b | c | d) & NO) != 0)
            return false;
        bytes[(*n)++] = (unsigned char)(a << 2 | b >> 4);
        bytes[(*n)++] = (unsigned char)(b << 4 | c >> 2);
        bytes[(*n)++] = (unsigned char)(c << 6 | d);
    }
    if (rest > 0) {
        unsigned a = digit_value(text[i]), b = digit_value(text[i + 1]);
        unsigned c = rest == 3 ? digit_value(text[i + 2]) : 0;
        unsigned unused = rest == 3 ? c & 3 : b & 15;
        if (((a | b | c) & NO) != 0 || unused != 0)
            return false;
        bytes[(*n)++] = (unsigned char)(a << 2 | b >> 4);
        if (rest == 3)
            bytes[(*n)++] = (unsigned char)(b << 4 | c >> 2);
    }
    return *n >= BYTES_MIN;
}

/* Reads a ticket or code of the right form. *visitor gets where the id begins, after its length. */
static bool read_text(const char *text, size_t length, unsigned char bytes[BYTES_MAX], size_t *n,
                      size_t *visitor)
{
    if (!decode(text, length, bytes, n) || bytes[0] < PLAIN || bytes[0] > CODE)
        return false;
    *visitor = HEAD_BYTES + (bytes[0] == PLAIN ? 0 : SERIAL_BYTES);
    return *n == *visitor + bytes[*visitor - 1] + MAC_BYTES;
}

bool tl_ticket_shaped(const char *text, size_t length)
{
    unsigned char bytes[BYTES_MAX];
    size_t n, visitor;
    return read_text(text, length, bytes, &n, &visitor) && bytes[0] != CODE;
}

/* Is it genuine? */
static bool open_text(const struct tl_keyring *keyring, const char *queue, const char *text,
                      size_t length, unsigned char bytes[BYTES_MAX], size_t *visitor)
{
    unsigned char mac[MAC_BYTES];
    size_t n = 0;
    if (!read_text(text, length, bytes, &n, visitor))
        return false;
    const struct tl_signing_key *key = tl_keyring_find(keyring, (uint32_t)tl_get_be(bytes + 1, 4));
    if (key == NULL)
        return false;
    make_mac(key, queue, bytes, n - MAC_BYTES, mac);
    return sodium_memcmp(mac, bytes + n - MAC_BYTES, MAC_BYTES) == 0 &&
           tl_visitor_valid((const char *)bytes + *visitor, bytes[*visitor - 1]);
}

static bool verify(const struct tl_keyring *keyring, const char *queue, const char *text,
                   size_t length, bool code, struct tl_ticket *ticket)
{
    unsigned char bytes[BYTES_MAX];
    size_t visitor;
    if (!open_text(keyring, queue, text, length, bytes, &visitor) || (bytes[0] == CODE) != code)
        return false;
    size_t visitor_length = bytes[visitor - 1];
    memcpy(ticket->visitor, bytes + visitor, visitor_length);
    ticket->visitor[visitor_length] = '\0';
    ticket->place = tl_get_be(bytes + 13, 8);
    ticket->outdated = false;
    ticket->serial = bytes[0] == PLAIN ? 0 : (uint32_t)tl_get_be(bytes + 25, SERIAL_BYTES);
    bool numbered = tl_place_seq(ticket->place) != 0;
    ticket->generation = numbered ? tl_get_be(bytes + 5, 8) : 0;
    ticket->invite = numbered ? 0 : tl_get_be(bytes + 5, 8);
    if (!code) {
        read_issued(ticket, (uint32_t)tl_get_be(bytes + 21, 4));
        return true;
    }
    ticket->issued = (uint32_t)tl_get_be(bytes + 21, 4);
    ticket->front = 0;
    return numbered && ticket->serial > 0;
}

bool tl_ticket_verify(const struct tl_keyring *keyring, const char *queue, const char *text,
                      size_t length, struct tl_ticket *ticket)
{
    return verify(keyring, queue, text, length, false, ticket);
}

bool tl_ticket_verify_code(const struct tl_keyring *keyring, const char *queue, const char *text,
                           size_t length, struct tl_ticket *ticket)
{
    return verify(keyring, queue, text, length, true, ticket);
}

int64_t tl_ticket_age_s(const struct tl_ticket *ticket, int64_t now_s)
{
    /* A whole time, of a pending ticket or of an older release, is far above the modulus. */
    if (ticket->issued >= TL_TICKET_ISSUED_MODULO)
        return now_s - ticket->issued;
    int64_t age = (now_s - ticket->issued) % TL_TICKET_ISSUED_MODULO;
    return age < 0 ? age + TL_TICKET_ISSUED_MODULO : age;
}

void tl_visitor_random(char visitor[TL_VISITOR_MAX + 1])
{
    unsigned char bytes[16];
    randombytes_buf(bytes, sizeof(bytes));
    sodium_bin2base64(visitor, TL_VISITOR_MAX + 1, bytes, sizeof(bytes), BASE64);
}
