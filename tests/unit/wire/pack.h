/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes msgpack from a short text, for tests of decoders: [1,"text",[2]] are arrays, whole numbers
 * and strings as they look; n nil, t true, f 1.5, m an empty map, b three bytes of binary, -5 a
 * negative number. Spaces are passed over.
 */
#ifndef TL_TEST_PACK_H
#define TL_TEST_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct packed {
    char *data;
    size_t size;
};

static inline void pack_bytes(struct packed *to, const char *bytes, size_t n)
{
    to->data = realloc(to->data, to->size + n + 1);
    if (to->data == NULL)
        abort();
    memcpy(to->data + to->size, bytes, n);
    to->size += n;
}

/* A tag, and n bytes of the number, big endian. */
static inline void pack_number(struct packed *to, unsigned tag, uint64_t number, unsigned n)
{
    char bytes[9] = {(char)tag};
    for (unsigned i = 0; i < n; i++)
        bytes[n - i] = (char)(number >> (8 * i));
    pack_bytes(to, bytes, n + 1);
}

/* How many elements the array has whose '[' was just read. */
static inline size_t pack_count(const char *text)
{
    size_t depth = 0, commas = 0;
    bool empty = true, quoted = false;
    for (; depth > 0 || quoted || *text != ']'; text++) {
        quoted = *text == '"' ? !quoted : quoted;
        empty = empty && *text == ' ';
        if (quoted)
            continue;
        depth += *text == '[' ? 1 : 0;
        depth -= *text == ']' ? 1 : 0;
        commas += depth == 0 && *text == ',' ? 1 : 0;
    }
    return empty ? 0 : commas + 1;
}

/* As short as msgpack can. */
static inline const char *pack_digits(struct packed *to, const char *text)
{
    char *end;
    uint64_t number = strtoull(text + (*text == '-' ? 1 : 0), &end, 10);
    unsigned width = number > UINT32_MAX ? 3 : number > UINT16_MAX ? 2 : number > UINT8_MAX ? 1 : 0;
    if (end == text)
        abort(); /* the test itself is wrong */
    if (*text == '-')
        pack_number(to, 0xd3, UINT64_C(0) - number, 8);
    else if (number < 0x80)
        pack_number(to, (unsigned)number, 0, 0);
    else
        pack_number(to, 0xcc + width, number, 1U << width);
    return end;
}

static inline const char *pack_string(struct packed *to, const char *text)
{
    const char *end = strchr(text, '"');
    size_t n = (size_t)(end - text);
    pack_number(to, n < 32 ? 0xa0 | (unsigned)n : 0xd9, n, n < 32 ? 0 : 1);
    pack_bytes(to, text, n);
    return end + 1;
}

static inline const char *pack_array(struct packed *to, const char *text)
{
    size_t n = pack_count(text);
    pack_number(to, n < 16 ? 0x90 | (unsigned)n : 0xdc, n, n < 16 ? 0 : 2);
    return text;
}

static inline const char *pack_value(struct packed *to, const char *text)
{
    switch (*text) {
    case '[':
        return pack_array(to, text + 1);
    case '"':
        return pack_string(to, text + 1);
    case 'n':
        pack_bytes(to, "\xc0", 1);
        return text + 1;
    case 't':
        pack_bytes(to, "\xc3", 1);
        return text + 1;
    case 'f':
        pack_bytes(to, "\xcb\x3f\xf8\0\0\0\0\0\0", 9);
        return text + 1;
    case 'm':
        pack_bytes(to, "\x80", 1);
        return text + 1;
    case 'b':
        pack_bytes(to, "\xc4\x03xyz", 5);
        return text + 1;
    default:
        return pack_digits(to, text);
    }
}

/* The bytes go to packed, which pack_free frees. */
static inline void pack_text(struct packed *packed, const char *text)
{
    *packed = (struct packed){0};
    while (*text != '\0')
        if (*text == ' ' || *text == ',' || *text == ']')
            text++;
        else
            text = pack_value(packed, text);
}

static inline void pack_free(struct packed *packed)
{
    free(packed->data);
    *packed = (struct packed){0};
}

#endif
