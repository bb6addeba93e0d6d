/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/grow.h"
#include "common/base/text.h"

void tl_text_append(struct tl_text *text, const char *format, ...)
{
    if (text->failed)
        return;
    va_list args;
    va_start(args, format);
    int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    text->failed = length < 0;
    size_t needed = text->length + (size_t)length + 1;
    char *data = text->failed ? NULL : tl_grow(text->data, &text->capacity, needed, 1);
    text->failed = data == NULL;
    if (text->failed)
        return;
    text->data = data;
    va_start(args, format);
    vsnprintf(text->data + text->length, (size_t)length + 1, format, args);
    va_end(args);
    text->length += (size_t)length;
}

void tl_text_free(struct tl_text *text)
{
    free(text->data);
    *text = (struct tl_text){0};
}

size_t tl_text_copy(char *copy, size_t size, const char *text)
{
    const size_t length = strnlen(text, size - 1);
    memcpy(copy, text, length);
    copy[length] = '\0';
    return length;
}

void tl_words_append(char *words, size_t size, const char *separator, const char *word,
                     size_t length)
{
    size_t used = strlen(words);
    (void)snprintf(words + used, size - used, "%s%.*s", used > 0 ? separator : "", (int)length,
                   word);
}

/* ---- UTF-8 ---- */

size_t tl_utf8_decode(const char *text, unsigned *code)
{
    const unsigned char *byte = (const unsigned char *)text;
    static const unsigned least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t n;
    if (byte[0] < 0x80)
        n = 1;
    else if (byte[0] >= 0xC0 && byte[0] < 0xE0)
        n = 2;
    else if (byte[0] >= 0xE0 && byte[0] < 0xF0)
        n = 3;
    else if (byte[0] >= 0xF0 && byte[0] < 0xF8)
        n = 4;
    else
        return 0;
    unsigned value = n == 1 ? byte[0] : byte[0] & (0x7Fu >> n);
    for (size_t i = 1; i < n; i++) {
        if ((byte[i] & 0xC0) != 0x80)
            return 0; /* the terminating zero ends here too */
        value = value << 6 | (byte[i] & 0x3Fu);
    }
    if (value < least[n] || value > 0x10FFFF || (value >= 0xD800 && value < 0xE000))
        return 0;
    *code = value;
    return n;
}

bool tl_utf8_valid(const char *text)
{
    unsigned code;
    while (*text != '\0') {
        size_t taken = tl_utf8_decode(text, &code);
        if (taken == 0)
            return false;
        text += taken;
    }
    return true;
}

bool tl_utf8_invisible(unsigned code)
{
    static const struct {
        unsigned first, last;
    } ranges[] = {
        {0x00, 0x1F},     {0x7F, 0x9F},     {0xAD, 0xAD},       {0x61C, 0x61C},
        {0x200B, 0x200F}, {0x2028, 0x202E}, {0x2060, 0x206F},   {0xFEFF, 0xFEFF},
        {0xFFF0, 0xFFFB}, {0xFFFE, 0xFFFF}, {0xE0000, 0xE0FFF},
    };
    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++)
        if (code >= ranges[i].first && code <= ranges[i].last)
            return true;
    return false;
}

void tl_quote(const char *text, char *quoted, size_t size)
{
    const size_t cut = size - sizeof("\"...\"") + 1; /* with the first quote */
    size_t used = 0;
    quoted[used++] = '"';
    while (*text != '\0') {
        unsigned code = 0;
        size_t taken = tl_utf8_decode(text, &code);
        bool shown = taken > 0 && !tl_utf8_invisible(code);
        size_t needed = shown ? taken : 1;
        if (used + needed > cut)
            break;
        if (shown)
            memcpy(quoted + used, text, taken);
        else
            quoted[used] = '?';
        used += needed;
        text += taken > 0 ? taken : 1;
    }
    snprintf(quoted + used, size - used, *text != '\0' ? "...\"" : "\"");
}

size_t tl_percent_encode(const char *text, char *encoded, size_t size)
{
    static const char digits[] = "0123456789ABCDEF";
    static const char plain[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
    size_t n = 0, written = 0;
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;
        const char unit[] = {'%', digits[c >> 4], digits[c & 15]};
        bool is_plain = strchr(plain, c) != NULL;
        size_t length = is_plain ? 1 : sizeof(unit);
        if (n == written && n + length < size) {
            memcpy(encoded + n, is_plain ? text : unit, length);
            written += length;
        }
        n += length;
    }
    encoded[written] = '\0';
    return n;
}
