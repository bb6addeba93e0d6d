/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes msgpack from a short text, for tests of decoders: [1,"text",[2]] are arrays, whole numbers
 * and strings as they look; n nil, t true, f 1.5, m an empty map, b three bytes of binary, -5 a
 * negative number. Spaces are passed over.
 */
#ifndef TL_TEST_PACK_H
#define TL_TEST_PACK_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <msgpack.h>

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

static inline const char *pack_number(msgpack_packer *pack, const char *text)
{
    char *end;
    if (*text == '-')
        msgpack_pack_int64(pack, strtoll(text, &end, 10));
    else
        msgpack_pack_uint64(pack, strtoull(text, &end, 10));
    if (end == text)
        abort(); /* the test itself is wrong */
    return end;
}

static inline const char *pack_string(msgpack_packer *pack, const char *text)
{
    const char *end = strchr(text, '"');
    msgpack_pack_str(pack, (size_t)(end - text));
    msgpack_pack_str_body(pack, text, (size_t)(end - text));
    return end + 1;
}

static inline const char *pack_value(msgpack_packer *pack, const char *text)
{
    switch (*text) {
    case '[':
        msgpack_pack_array(pack, pack_count(text + 1));
        return text + 1;
    case '"':
        return pack_string(pack, text + 1);
    case 'n':
        msgpack_pack_nil(pack);
        return text + 1;
    case 't':
        msgpack_pack_true(pack);
        return text + 1;
    case 'f':
        msgpack_pack_double(pack, 1.5);
        return text + 1;
    case 'm':
        msgpack_pack_map(pack, 0);
        return text + 1;
    case 'b':
        msgpack_pack_bin(pack, 3);
        msgpack_pack_bin_body(pack, "bin", 3);
        return text + 1;
    default:
        return pack_number(pack, text);
    }
}

/* The bytes go to buffer, which the caller destroys. */
static inline void pack_text(msgpack_sbuffer *buffer, const char *text)
{
    msgpack_packer pack;
    msgpack_sbuffer_init(buffer);
    msgpack_packer_init(&pack, buffer, msgpack_sbuffer_write);
    while (*text != '\0')
        if (*text == ' ' || *text == ',' || *text == ']')
            text++;
        else
            text = pack_value(&pack, text);
}

#endif
