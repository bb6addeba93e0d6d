/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "common/config/texts.h"
#include "common/wire/notice_text.h"

enum { MARK = 0x1E };

/* Behind a text that ends with a zero. */
static const char *behind(const char *text)
{
    return text + strlen(text) + 1;
}

const char *tl_texts_next(const char *texts, const char *text, const char **language)
{
    *language = text == NULL ? texts : behind(text);
    return **language != '\0' ? behind(*language) : NULL;
}

/* The text whose language is these `length` characters. */
static const char *find(const char *texts, const char *code, size_t length, const char **language)
{
    const char *text = NULL;
    while ((text = tl_texts_next(texts, text, language)) != NULL)
        if (strncasecmp(*language, code, length) == 0 && (*language)[length] == '\0')
            break;
    return text;
}

const char *tl_texts_pick(const char *texts, const char *language, const char **found)
{
    const char *code;
    const char *text = find(texts, language, strlen(language), &code);
    if (text == NULL)
        text = find(texts, language, strcspn(language, "-"), &code);
    if (text == NULL)
        text = find(texts, TL_TEXTS_EVERYONE, 1, &code);
    if (text == NULL)
        text = find(texts, "en", 2, &code);
    if (text == NULL)
        text = tl_texts_next(texts, NULL, &code);
    if (found != NULL)
        *found = text != NULL && strcmp(code, TL_TEXTS_EVERYONE) != 0 ? code : NULL;
    return text != NULL ? text : "";
}

bool tl_texts_language_valid(const char *language)
{
    return strcmp(language, TL_TEXTS_EVERYONE) == 0 ||
           tl_notice_language_valid(language, strlen(language));
}

bool tl_texts_put(char *texts, size_t size, const char *language, const char *text, size_t length)
{
    const char *code, *at = NULL;
    size_t n = 0, used = 0, old = 0, old_at = 0;
    while ((at = tl_texts_next(texts, at, &code)) != NULL) {
        size_t entry = (size_t)(behind(at) - code);
        if (strcasecmp(code, language) == 0) {
            old = entry;
            old_at = used;
        }
        used += entry;
        n++;
    }
    size_t added = length > 0 ? strlen(language) + length + 2 : 0;
    if (used - old + added + 1 > size || (old == 0 && added > 0 && n == TL_TEXTS_LANGUAGES))
        return false;
    memmove(texts + old_at, texts + old_at + old, used + 1 - old_at - old);
    if (added > 0) {
        char *end = texts + used - old;
        end = stpcpy(end, language) + 1;
        memcpy(end, text, length);
        memset(end + length, 0, 2);
    }
    return true;
}

void tl_texts_write(const char *texts, char *value, size_t size)
{
    const char *code, *text = tl_texts_next(texts, NULL, &code);
    size_t used = 0;
    value[0] = '\0';
    if (text != NULL && strcmp(code, TL_TEXTS_EVERYONE) == 0 && *behind(text) == '\0') {
        snprintf(value, size, "%s", text);
        return;
    }
    for (; text != NULL && used < size; text = tl_texts_next(texts, text, &code))
        used += (size_t)snprintf(value + used, size - used, "%c[%s] %s", MARK, code, text);
}

/* "[en] text" of this length. */
static bool read_one(const char *part, size_t length, char *texts, size_t size)
{
    char code[TL_NOTICE_LANGUAGE_MAX + 1];
    const char *end = length > 0 && part[0] == '[' ? memchr(part, ']', length) : NULL;
    size_t code_length = end != NULL ? (size_t)(end - part) - 1 : 0;
    size_t head = code_length + strlen("[] ");
    if (end == NULL || end[1] != ' ' || code_length >= sizeof(code) || head >= length)
        return false;
    snprintf(code, sizeof(code), "%.*s", (int)code_length, part + 1);
    return tl_texts_language_valid(code) &&
           tl_texts_put(texts, size, code, part + head, length - head);
}

bool tl_texts_read(const char *value, char *texts, size_t size)
{
    static const char mark[] = {MARK, '\0'};
    texts[0] = '\0';
    if (*value != MARK)
        return tl_texts_put(texts, size, TL_TEXTS_EVERYONE, value, strlen(value));
    while (*value == MARK) {
        size_t length = strcspn(value + 1, mark);
        if (!read_one(value + 1, length, texts, size))
            return false;
        value += 1 + length;
    }
    return true;
}
