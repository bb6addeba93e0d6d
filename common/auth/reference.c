/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include <sodium.h>

#include "common/auth/reference.h"
#include "common/base/big_endian.h"
#include "common/base/text.h"
#include "common/wire/names.h"

enum { BITS = 40, DIGIT_BITS = 5, DIGITS = BITS / DIGIT_BITS };

_Static_assert(DIGITS + 1 < TL_REFERENCE_MAX, "digits, a hyphen and a NUL fit");
_Static_assert(TL_REFERENCE_KEY_BYTES == crypto_shorthash_KEYBYTES, "what libsodium expects");

static const char digit_names[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/* Big endian, so that the code is the same on every machine. */
static uint64_t number_of(const struct tl_signing_key *key, const char *queue, const char *visitor)
{
    char text[TL_QUEUE_NAME_MAX + 1 + TL_REFERENCE_NAME_MAX];
    unsigned char hash[crypto_shorthash_BYTES];
    size_t length = tl_text_copy(text, TL_QUEUE_NAME_MAX + 1, queue);
    text[length++] = '/'; /* no name has one */
    length += tl_text_copy(text + length, TL_REFERENCE_NAME_MAX, visitor);
    (void)crypto_shorthash(hash, (const unsigned char *)text, length,
                           key->reference); /* always 0 */
    return tl_get_be(hash, BITS / 8);
}

void tl_reference_write(const struct tl_keyring *keyring, const char *queue, const char *visitor,
                        char text[TL_REFERENCE_MAX])
{
    uint64_t number = number_of(&keyring->keys[0], queue, visitor);
    size_t n = 0;
    for (int i = DIGITS - 1; i >= 0; i--) {
        text[n++] = digit_names[number >> (i * DIGIT_BITS) & 31];
        if (i == DIGITS / 2)
            text[n++] = '-';
    }
    text[n] = '\0';
}

/* The value of a character; -1: it is no digit. */
static int digit_of(char c)
{
    if (c >= 'a' && c <= 'z')
        c = (char)(c - 'a' + 'A');
    if (c == 'O')
        c = '0';
    if (c == 'I' || c == 'L')
        c = '1';
    const char *at = c != '\0' ? strchr(digit_names, c) : NULL;
    return at != NULL ? (int)(at - digit_names) : -1;
}

bool tl_reference_read(const char *text, uint64_t *number)
{
    uint64_t value = 0;
    unsigned digits = 0;
    for (; *text != '\0'; text++) {
        if (*text == '-' || *text == ' ')
            continue;
        int digit = digit_of(*text);
        if (digit < 0 || ++digits > DIGITS)
            return false;
        value = value << DIGIT_BITS | (uint64_t)digit;
    }
    *number = value;
    return digits == DIGITS;
}

bool tl_reference_is_of(const struct tl_keyring *keyring, const char *queue, const char *visitor,
                        uint64_t number)
{
    for (size_t i = 0; i < keyring->n; i++)
        if (number_of(&keyring->keys[i], queue, visitor) == number)
            return true;
    return false;
}
