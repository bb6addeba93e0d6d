/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes in hex digits, in a time that depends on their number alone. */
#ifndef TL_HEX_H
#define TL_HEX_H

#include <stdbool.h>
#include <stddef.h>

#include <sodium.h>

/* Parses exactly 2 * n hex digits. False for anything else. */
static inline bool tl_hex_parse(const char *digits, size_t length, unsigned char *bytes, size_t n)
{
    size_t parsed = 0;
    return length == 2 * n && sodium_hex2bin(bytes, n, digits, length, NULL, &parsed, NULL) == 0 &&
           parsed == n;
}

/* Writes 2 * n lowercase hex digits and a NUL. */
static inline void tl_hex_format(const unsigned char *bytes, size_t n, char *digits)
{
    sodium_bin2hex(digits, 2 * n + 1, bytes, n);
}

#endif
