/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>
#include <string.h>

#include "common/base/json_text.h"

/* Where n more bytes go; NULL: they do not fit. */
static char *room(struct tl_json *json, size_t n)
{
    if (json->size - json->length < n) {
        json->failed = true;
        return NULL;
    }
    char *at = json->text + json->length;
    json->length += n;
    return at;
}

static void put(struct tl_json *json, const char *bytes, size_t n)
{
    char *at = room(json, n);
    if (at != NULL)
        memcpy(at, bytes, n);
}

static void put_char(struct tl_json *json, char c)
{
    put(json, &c, 1);
}

static void put_escaped(struct tl_json *json, unsigned char c)
{
    static const char hex[] = "0123456789abcdef";
    if (c == '"' || c == '\\') {
        put_char(json, '\\');
        put_char(json, (char)c);
        return;
    }
    put(json, "\\u00", 4);
    put_char(json, hex[c >> 4]);
    put_char(json, hex[c & 15]);
}

static void put_string(struct tl_json *json, const char *value)
{
    /* What ends a run of characters that stand for themselves: control characters, the zero among
     * them, quotes, backslashes. */
    static const bool ends[UCHAR_MAX + 1] = {
        1,         1,          1,          1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, /* 0x00 */
        1,         1,          1,          1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, /* 0x10 */
        ['"'] = 1, ['\\'] = 1, [0x7f] = 1,
    };
    put_char(json, '"');
    for (;; value++) {
        const char *plain = value;
        while (!ends[(unsigned char)*value])
            value++;
        put(json, plain, (size_t)(value - plain));
        if (*value == '\0')
            break;
        put_escaped(json, (unsigned char)*value);
    }
    put_char(json, '"');
}

static bool is_first(const struct tl_json *json)
{
    char last = json->length > 0 ? json->text[json->length - 1] : '{';
    return last == '{' || last == '[';
}

static void put_name(struct tl_json *json, const char *name)
{
    const size_t length = strlen(name);
    const bool first = is_first(json);
    char *at = room(json, length + (first ? 3 : 4));
    if (at == NULL)
        return;
    if (!first)
        *at++ = ',';
    *at++ = '"';
    at = stpcpy(at, name); /* and a zero, in the place of the next character */
    at[0] = '"';
    at[1] = ':';
}

void tl_json_begin(struct tl_json *json, char *buffer, size_t size)
{
    *json = (struct tl_json){.text = buffer, .size = size};
    put_char(json, '{');
}

void tl_json_string(struct tl_json *json, const char *name, const char *value)
{
    put_name(json, name);
    put_string(json, value);
}

void tl_json_plain(struct tl_json *json, const char *name, const char *value)
{
    put_name(json, name);
    put_char(json, '"');
    put(json, value, strlen(value));
    put_char(json, '"');
}

void tl_json_uint(struct tl_json *json, const char *name, uint64_t value)
{
    char digits[20];
    size_t first = sizeof(digits);
    put_name(json, name);
    do {
        digits[--first] = (char)('0' + value % 10);
        value /= 10;
    } while (value > 0);
    put(json, digits + first, sizeof(digits) - first);
}

void tl_json_bool(struct tl_json *json, const char *name, bool value)
{
    put_name(json, name);
    put(json, value ? "true" : "false", value ? 4 : 5);
}

void tl_json_members(struct tl_json *json, const char *members, size_t length)
{
    if (length > 0 && !is_first(json))
        put_char(json, ',');
    put(json, members, length);
}

void tl_json_array(struct tl_json *json, const char *name)
{
    put_name(json, name);
    put_char(json, '[');
}

void tl_json_item(struct tl_json *json, const char *value)
{
    if (!is_first(json))
        put_char(json, ',');
    put_string(json, value);
}

void tl_json_array_end(struct tl_json *json)
{
    put_char(json, ']');
}

size_t tl_json_end(struct tl_json *json)
{
    put(json, "}\n", 2);
    return json->failed ? 0 : json->length;
}
