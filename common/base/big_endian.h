/* SPDX-License-Identifier: Apache-2.0 */
/* Whole numbers as bytes, the most significant first: the same on every machine. */
#ifndef TL_BIG_ENDIAN_H
#define TL_BIG_ENDIAN_H

#include <stddef.h>
#include <stdint.h>

/* Writes the lowest n bytes of the value, at most 8. */
static inline void tl_put_be(unsigned char *bytes, uint64_t value, size_t n)
{
    for (size_t i = n; i > 0; i--, value >>= 8)
        bytes[i - 1] = (unsigned char)value;
}

/* Reads n bytes, at most 8. */
static inline uint64_t tl_get_be(const unsigned char *bytes, size_t n)
{
    uint64_t value = 0;
    for (size_t i = 0; i < n; i++)
        value = value << 8 | bytes[i];
    return value;
}

#endif
