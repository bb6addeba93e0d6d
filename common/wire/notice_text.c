/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <strings.h>

#include "common/wire/notice_text.h"

enum { MARK = 0x1E, SUBTAG_MAX = 8 };

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool tl_notice_language_valid(const char *code, size_t length)
{
    size_t tag = 0; /* characters of the present one */
    bool first = true;
    for (size_t i = 0; i <= length; i++) {
        if (i == length || code[i] == '-') {
            if (tag < 2 || tag > (first ? 3U : SUBTAG_MAX))
                return false;
            first = false;
            tag = 0;
        } else if (first ? code[i] >= 'a' && code[i] <= 'z'
                         : is_letter(code[i]) || (code[i] >= '0' && code[i] <= '9')) {
            tag++;
        } else {
            return false;
        }
    }
    return length <= TL_NOTICE_LANGUAGE_MAX;
}

/* At most this many bytes, and no part of a character at the end. */
static size_t cut(const char *text, size_t length)
{
    if (length <= TL_NOTICE_TEXT_MAX)
        return length;
    length = TL_NOTICE_TEXT_MAX;
    while (length > 0 && ((unsigned char)text[length] & 0xC0) == 0x80)
        length--;
    return length;
}

/* "[en] text", of one language. */
static void read_one(const char *part, size_t length, struct tl_notice_text *one)
{
    const char *end = length > 0 && part[0] == '[' ? memchr(part, ']', length) : NULL;
    size_t code = end != NULL ? (size_t)(end - part) - 1 : 0;
    size_t head = code + sizeof("[] ") - 1;
    *one = (struct tl_notice_text){.text = part, .length = length};
    if (end != NULL && head <= length && end[1] == ' ' &&
        tl_notice_language_valid(part + 1, code)) {
        memcpy(one->language, part + 1, code);
        one->text += head;
        one->length -= head;
    }
    one->length = cut(one->text, one->length);
}

bool tl_notice_is_several(const char *notice)
{
    return notice[0] == MARK;
}

size_t tl_notice_split(const char *notice, size_t length,
                       struct tl_notice_text texts[TL_NOTICE_LANGUAGES])
{
    size_t n = 0;
    if (length == 0 || notice[0] != MARK) {
        texts[0] = (struct tl_notice_text){.text = notice, .length = cut(notice, length)};
        return 1;
    }
    for (size_t at = 0; at < length && n < TL_NOTICE_LANGUAGES; n++) {
        const char *part = notice + at + 1;
        size_t rest = length - at - 1;
        const char *next = rest > 0 ? memchr(part, MARK, rest) : NULL;
        size_t size = next != NULL ? (size_t)(next - part) : rest;
        read_one(part, size, &texts[n]);
        at += 1 + size;
    }
    return n;
}

static bool check_one(const struct tl_notice_text *one, bool several, struct tl_error *err)
{
    if (one->length > TL_NOTICE_TEXT_MAX)
        return tl_error_set(err, TL_ERR_INVALID, "a notice of %zu bytes; the limit is %d",
                            one->length, TL_NOTICE_TEXT_MAX);
    if (one->length > 0 && memchr(one->text, MARK, one->length) != NULL)
        return tl_error_set(err, TL_ERR_INVALID, "a notice without the character U+001E");
    if (several && one->length == 0)
        return tl_error_set(err, TL_ERR_INVALID, "the notice in %s is empty", one->language);
    if (several && !tl_notice_language_valid(one->language, strlen(one->language)))
        return tl_error_set(err, TL_ERR_INVALID, "a language is a code like en, ko or zh-Hant");
    return true;
}

bool tl_notice_join(const struct tl_notice_text *texts, size_t n, struct tl_text *notice,
                    struct tl_error *err)
{
    bool several = n > 1 || (n == 1 && texts[0].language[0] != '\0');
    if (n == 0 || n > TL_NOTICE_LANGUAGES)
        return tl_error_set(err, TL_ERR_INVALID, "a notice has 1 to %d languages",
                            TL_NOTICE_LANGUAGES);
    for (size_t i = 0; i < n; i++) {
        if (!check_one(&texts[i], several, err))
            return false;
        for (size_t j = 0; several && j < i; j++)
            if (strcasecmp(texts[j].language, texts[i].language) == 0)
                return tl_error_set(err, TL_ERR_INVALID, "the language %s is given twice",
                                    texts[i].language);
    }
    for (size_t i = 0; i < n; i++) {
        if (several)
            tl_text_append(notice, "%c[%s] ", MARK, texts[i].language);
        tl_text_append(notice, "%.*s", (int)texts[i].length, texts[i].text);
    }
    return true;
}

bool tl_notice_check(const char *notice, size_t length, struct tl_error *err)
{
    struct tl_notice_text texts[TL_NOTICE_LANGUAGES];
    struct tl_text again = {0};
    if (length > 0 && notice[0] != MARK) {
        const struct tl_notice_text whole = {.text = notice, .length = length};
        return check_one(&whole, false, err);
    }
    size_t n = tl_notice_split(notice, length, texts);
    bool ok = tl_notice_join(texts, n, &again, err);
    if (ok && again.failed)
        ok = tl_error_set(err, TL_ERR_NOMEM, "no memory for the notice");
    if (ok && (again.length != length || (length > 0 && memcmp(again.data, notice, length) != 0)))
        ok = tl_error_set(err, TL_ERR_INVALID, "this is no notice of several languages");
    tl_text_free(&again);
    return ok;
}

static size_t find(const struct tl_notice_text *texts, size_t n, const char *code, size_t length)
{
    for (size_t i = 0; i < n; i++)
        if (strlen(texts[i].language) == length &&
            strncasecmp(texts[i].language, code, length) == 0)
            return i;
    return n;
}

size_t tl_notice_pick(const struct tl_notice_text *texts, size_t n, const char *language)
{
    size_t found = n;
    if (language != NULL)
        found = find(texts, n, language, strlen(language));
    if (found == n && language != NULL)
        found = find(texts, n, language, strcspn(language, "-"));
    if (found == n)
        found = find(texts, n, "en", 2);
    return found < n ? found : 0;
}
