/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "common/base/big_endian.h"
#include "common/wire/fields.h"

/* How a type begins in msgpack: with a tag that holds its value, or with one that tells how many
 * bytes after it do. */
struct type {
    const char *name;
    unsigned char first, last; /* the tags that hold it: `first` holds 0 */
    unsigned char wide, widest;
    unsigned char width; /* bytes behind the tag `wide`; behind the next tag twice as many */
};

static const struct type number = {"a whole number", 0x00, 0x7f, 0xcc, 0xcf, 1};
static const struct type string = {"a string", 0xa0, 0xbf, 0xd9, 0xdb, 1};
static const struct type array = {"an array", 0x90, 0x9f, 0xdc, 0xdd, 2};

static size_t left(const struct tl_fields *fields)
{
    return (size_t)(fields->end - fields->at);
}

/* *value: the number, or the length of the string or array; 0 on failure. */
static bool take(struct tl_fields *fields, const struct type *type, uint64_t *value)
{
    *value = 0;
    if (left(fields) == 0)
        return tl_error_set(fields->err, TL_ERR_INVALID, "the bytes end before %s", type->name);
    unsigned tag = *fields->at++;
    if (tag >= type->first && tag <= type->last) {
        *value = tag - type->first;
        return true;
    }
    if (tag < type->wide || tag > type->widest)
        return tl_error_set(fields->err, TL_ERR_INVALID, "expected %s, not the type 0x%02x",
                            type->name, tag);
    size_t width = (size_t)type->width << (tag - type->wide);
    if (left(fields) < width)
        return tl_error_set(fields->err, TL_ERR_INVALID, "the bytes end inside %s", type->name);
    *value = tl_get_be(fields->at, width);
    fields->at += width;
    return true;
}

bool tl_fields_uint(struct tl_fields *fields, uint64_t limit, uint64_t *value)
{
    if (!take(fields, &number, value))
        return false;
    return *value <= limit ||
           tl_error_set(fields->err, TL_ERR_INVALID, "the number %llu is above its limit %llu",
                        (unsigned long long)*value, (unsigned long long)limit);
}

/* Takes a string or an array whose n bytes, or elements of a byte at least, are there. */
static bool take_length(struct tl_fields *fields, const struct type *type, size_t *n)
{
    uint64_t length;
    bool ok = take(fields, type, &length);
    *n = (size_t)length;
    return ok &&
           (length <= left(fields) || tl_error_set(fields->err, TL_ERR_INVALID,
                                                   "%s is longer than the bytes left", type->name));
}

bool tl_fields_string(struct tl_fields *fields, const char **text, size_t *length)
{
    if (!take_length(fields, &string, length))
        return false;
    *text = (const char *)fields->at;
    fields->at += *length;
    return true;
}

bool tl_fields_array(struct tl_fields *fields, size_t *n)
{
    return take_length(fields, &array, n);
}

bool tl_fields_expect(const struct tl_fields *fields, size_t n, size_t expected)
{
    return n == expected || tl_error_set(fields->err, TL_ERR_INVALID,
                                         "an array of %zu fields; expected %zu", n, expected);
}

bool tl_fields_worker(struct tl_fields *fields, char name[TL_WORKER_ID_MAX + 1])
{
    const char *text;
    size_t length;
    if (!tl_fields_string(fields, &text, &length))
        return false;
    if (!tl_printable(text, length, TL_WORKER_ID_MAX))
        return tl_error_set(fields->err, TL_ERR_INVALID,
                            "a worker's name that is not 1 to %d printable ASCII characters",
                            TL_WORKER_ID_MAX);
    memcpy(name, text, length);
    name[length] = '\0';
    return true;
}

bool tl_fields_begin(struct tl_fields *fields, const void *bytes, size_t length, uint64_t version,
                     size_t n)
{
    uint64_t found;
    size_t elements;
    if (length > TL_WIRE_BYTES_MAX)
        return tl_error_set(fields->err, TL_ERR_INVALID, "%zu bytes; the limit is %d", length,
                            TL_WIRE_BYTES_MAX);
    fields->at = bytes;
    fields->end = fields->at + length;
    if (!tl_fields_array(fields, &elements) || !tl_fields_uint(fields, UINT64_MAX, &found))
        return false;
    if (found != version)
        return tl_error_set(
            fields->err, TL_ERR_INVALID,
            "format version %llu, but this program knows only version %llu: upgrade this program",
            (unsigned long long)found, (unsigned long long)version);
    return tl_fields_expect(fields, elements, n);
}

bool tl_fields_end(const struct tl_fields *fields)
{
    return fields->at == fields->end ||
           tl_error_set(fields->err, TL_ERR_INVALID, "bytes are left over after the last field");
}
