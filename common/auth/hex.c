/* SPDX-License-Identifier: Apache-2.0 */
#include <sodium.h>

#include "common/auth/hex.h"

bool tl_hex_parse(const char *digits, size_t length, unsigned char *bytes, size_t n)
{
    size_t parsed = 0;
    const char *end = NULL;
    return length == 2 * n && sodium_hex2bin(bytes, n, digits, length, NULL, &parsed, &end) == 0 &&
           parsed == n && end == digits + length;
}

void tl_hex_format(const unsigned char *bytes, size_t n, char *digits)
{
    sodium_bin2hex(digits, 2 * n + 1, bytes, n);
}
