/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "worker/http/json_text.h"

static void put(struct tl_json *json, const char *bytes, size_t n)
{
    if (json->size - json->length < n) {
        json->failed = true;
        return;
    }
    memcpy(json->text + json->length, bytes, n);
    json->length += n;
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
    put_char(json, '"');
    const char *plain = value;
    for (; *value != '\0'; value++) {
        unsigned char c = (unsigned char)*value;
        if (c >= 0x20 && c != '"' && c != '\\' && c != 0x7f)
            continue;
        put(json, plain, (size_t)(value - plain));
        put_escaped(json, c);
        plain = value + 1;
    }
    put(json, plain, (size_t)(value - plain));
    put_char(json, '"');
}

static void separate(struct tl_json *json)
{
    char last = json->length > 0 ? json->text[json->length - 1] : '{';
    if (last != '{' && last != '[')
        put_char(json, ',');
}

static void put_name(struct tl_json *json, const char *name)
{
    separate(json);
    put_char(json, '"');
    put(json, name, strlen(name));
    put(json, "\":", 2);
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
    if (length > 0)
        separate(json);
    put(json, members, length);
}

void tl_json_array(struct tl_json *json, const char *name)
{
    put_name(json, name);
    put_char(json, '[');
}

void tl_json_item(struct tl_json *json, const char *value)
{
    separate(json);
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
