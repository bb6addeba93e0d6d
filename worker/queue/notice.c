/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "common/base/json_text.h"
#include "common/wire/notice_text.h"
#include "worker/queue/queue.h"

struct tl_notice_told {
    char text[TL_NOTICE_TEXT_MAX + 1];
    char json[TL_JSON_ESCAPED_MAX(TL_NOTICE_TEXT_MAX) + 16];
};

static void write_told(struct tl_notice_told *told, const struct tl_notice_text *text)
{
    struct tl_json json;
    if (text->length > 0)
        memcpy(told->text, text->text, text->length);
    told->text[text->length] = '\0';
    tl_json_begin(&json, told->json, sizeof(told->json));
    tl_json_string(&json, "text", told->text);
    told->json[tl_json_end(&json)] = '\0';
}

bool tl_notice_set(struct tl_notice *notice, const char *bytes, size_t length)
{
    struct tl_notice_text texts[TL_NOTICE_LANGUAGES];
    if (notice->length == length && (length == 0 || memcmp(notice->bytes, bytes, length) == 0))
        return true;
    char *copy = malloc(length + 1);
    size_t n = tl_notice_split(bytes, length, texts);
    struct tl_notice_told *told = calloc(n, sizeof(*told));
    if (copy == NULL || told == NULL) {
        free(copy);
        free(told);
        return false;
    }
    if (length > 0)
        memcpy(copy, bytes, length);
    for (size_t i = 0; i < n; i++)
        write_told(&told[i], &texts[i]);
    tl_notice_clear(notice);
    notice->bytes = copy;
    notice->length = length;
    notice->told = told;
    notice->n = n;
    notice->version++;
    return true;
}

void tl_notice_clear(struct tl_notice *notice)
{
    free(notice->bytes);
    free(notice->told);
    *notice = (struct tl_notice){.version = notice->version};
}

bool tl_notice_varies(const struct tl_notice *notice)
{
    return notice->n > 1;
}

static const struct tl_notice_told *pick(const struct tl_notice *notice, const char *language)
{
    struct tl_notice_text texts[TL_NOTICE_LANGUAGES];
    if (!tl_notice_varies(notice))
        return notice->told;
    size_t n = tl_notice_split(notice->bytes, notice->length, texts);
    return &notice->told[tl_notice_pick(texts, n, language)];
}

const char *tl_notice_text(const struct tl_notice *notice, const char *language)
{
    const struct tl_notice_told *told = pick(notice, language);
    return told != NULL ? told->text : "";
}

const char *tl_notice_json(const struct tl_notice *notice, const char *language)
{
    const struct tl_notice_told *told = pick(notice, language);
    return told != NULL ? told->json : NULL;
}
