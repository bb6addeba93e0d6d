/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>

#include "common/wire/scan.h"

struct scanner {
    const uint8_t *at, *end;
    struct tl_error *err;
};

static bool big_endian(struct scanner *scan, size_t width, uint64_t *value)
{
    if ((size_t)(scan->end - scan->at) < width)
        return tl_error_set(scan->err, TL_ERR_INVALID, "the bytes end inside a value");
    *value = 0;
    for (size_t i = 0; i < width; i++)
        *value = *value << 8 | *scan->at++;
    return true;
}

static bool skip(struct scanner *scan, uint64_t length)
{
    if ((uint64_t)(scan->end - scan->at) < length)
        return tl_error_set(scan->err, TL_ERR_INVALID, "a string is longer than the bytes left");
    scan->at += length;
    return true;
}

static bool value(struct scanner *scan, unsigned depth);

static bool elements(struct scanner *scan, uint64_t count, unsigned depth)
{
    if (depth == 0)
        return tl_error_set(scan->err, TL_ERR_INVALID, "arrays are nested too deeply");
    /* Each element takes at least one byte. */
    if (count > (uint64_t)(scan->end - scan->at))
        return tl_error_set(scan->err, TL_ERR_INVALID,
                            "an array declares more elements than there are bytes");
    for (uint64_t i = 0; i < count; i++)
        if (!value(scan, depth - 1))
            return false;
    return true;
}

/* One value; formats as in the msgpack specification. */
static bool value(struct scanner *scan, unsigned depth)
{
    uint64_t number = 0;
    if (!big_endian(scan, 1, &number))
        return false;
    unsigned tag = (unsigned)number;
    if (tag <= 0x7f) /* positive fixint */
        return true;
    if (tag >= 0x90 && tag <= 0x9f) /* fixarray */
        return elements(scan, tag & 0x0f, depth);
    if (tag >= 0xa0 && tag <= 0xbf) /* fixstr */
        return skip(scan, tag & 0x1f);
    switch (tag) {
    case 0xcc: /* uint 8, 16, 32, 64 */
    case 0xcd:
    case 0xce:
    case 0xcf:
        return skip(scan, UINT64_C(1) << (tag - 0xcc));
    case 0xd9: /* str 8, 16, 32 */
    case 0xda:
    case 0xdb:
        return big_endian(scan, (size_t)1 << (tag - 0xd9), &number) && skip(scan, number);
    case 0xdc: /* array 16, 32 */
    case 0xdd:
        return big_endian(scan, (size_t)2 << (tag - 0xdc), &number) &&
               elements(scan, number, depth);
    default:
        return tl_error_set(scan->err, TL_ERR_INVALID,
                            "a value of a type that is never sent (0x%02x)", tag);
    }
}

bool tl_wire_scan(const void *bytes, size_t length, unsigned depth, struct tl_error *err)
{
    struct scanner scan = {.at = bytes, .end = (const uint8_t *)bytes + length, .err = err};
    if (!value(&scan, depth))
        return false;
    if (scan.at != scan.end)
        return tl_error_set(err, TL_ERR_INVALID, "bytes are left over after the value");
    return true;
}
