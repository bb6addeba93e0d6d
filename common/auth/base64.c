/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>

#include "common/auth/base64.h"

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

void tl_base64_encode(const unsigned char *bytes, size_t n, char *text)
{
    for (; n >= 3; n -= 3, bytes += 3) {
        *text++ = digits[bytes[0] >> 2];
        *text++ = digits[(bytes[0] & 3) << 4 | bytes[1] >> 4];
        *text++ = digits[(bytes[1] & 15) << 2 | bytes[2] >> 6];
        *text++ = digits[bytes[2] & 63];
    }
    if (n > 0) {
        const unsigned second = n > 1 ? bytes[1] : 0;
        *text++ = digits[bytes[0] >> 2];
        *text++ = digits[(bytes[0] & 3u) << 4 | second >> 4];
        if (n > 1)
            *text++ = digits[(second & 15) << 2];
    }
    *text = '\0';
}

/* The value of each digit, and one more; 0: it is none. */
static const unsigned char values[UCHAR_MAX + 1] = {
    ['-'] = 63,                                                 /* */
    ['0'] = 53, 54, 55, 56, 57, 58, 59, 60, 61, 62,             /* to 9 */
    ['A'] = 1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, /* to M */
    ['N'] = 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, /* to Z */
    ['_'] = 64,                                                 /* */
    ['a'] = 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, /* to m */
    ['n'] = 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52, /* to z */
};

/* Above 63: no digit. */
static unsigned value_of(char digit)
{
    return values[(unsigned char)digit] - 1U;
}

bool tl_base64_decode(const char *text, size_t length, unsigned char *bytes, size_t room, size_t *n)
{
    const size_t rest = length % 4;
    *n = length / 4 * 3 + (rest > 0 ? rest - 1 : 0);
    if (rest == 1 || *n > room)
        return false;
    for (; length >= 4; length -= 4, text += 4) {
        unsigned a = value_of(text[0]), b = value_of(text[1]);
        unsigned c = value_of(text[2]), d = value_of(text[3]);
        if ((a | b | c | d) > 63)
            return false;
        *bytes++ = (unsigned char)(a << 2 | b >> 4);
        *bytes++ = (unsigned char)(b << 4 | c >> 2);
        *bytes++ = (unsigned char)(c << 6 | d);
    }
    if (rest == 0)
        return true;
    unsigned a = value_of(text[0]), b = value_of(text[1]), c = rest == 3 ? value_of(text[2]) : 0;
    unsigned unused = rest == 3 ? c & 3 : b & 15;
    if ((a | b | c) > 63 || unused != 0)
        return false;
    *bytes++ = (unsigned char)(a << 2 | b >> 4);
    if (rest == 3)
        *bytes = (unsigned char)(b << 4 | c >> 2);
    return true;
}
