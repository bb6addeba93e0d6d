/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "common/base/text.h"
#include "common/base/units.h"

#include "ctl/calls/calls.h"

enum { VALUE_MAX = 1200, NAME_MAX_BYTES = 40 };

/* A member of one of both; "settings.opens_at" is one of an inner object. */
static const json_t *member_of(const char *name, const json_t *answer, const json_t *arguments)
{
    const char *dot = strchr(name, '.');
    const json_t *value =
        dot != NULL ? json_object_get(json_object_getn(answer, name, (size_t)(dot - name)), dot + 1)
                    : json_object_get(answer, name);
    return value != NULL ? value : json_object_get(arguments, name);
}

bool tl_sentence_holds(const struct tl_sentence *sentence, const json_t *answer,
                       const json_t *arguments)
{
    if (sentence->text == NULL || sentence->when == NULL)
        return sentence->text != NULL;
    char name[NAME_MAX_BYTES], text[VALUE_MAX];
    size_t length = strcspn(sentence->when, "=");
    snprintf(name, sizeof(name), "%.*s", (int)length, sentence->when);
    tl_json_show(member_of(name, answer, arguments), text, sizeof(text));
    if (sentence->when[length] == '=')
        return strcmp(text, sentence->when + length + 1) == 0;
    return text[0] != '\0' && strcmp(text, "false") != 0 && strcmp(text, "0") != 0;
}

void tl_sentence_write(const char *sentence, const json_t *answer, const json_t *arguments,
                       struct tl_text *out)
{
    while (*sentence != '\0') {
        size_t plain = strcspn(sentence, "{");
        tl_text_append(out, "%.*s", (int)plain, sentence);
        sentence += plain;
        if (*sentence == '\0')
            break;
        char name[NAME_MAX_BYTES], value[VALUE_MAX], shown[VALUE_MAX];
        size_t length = strcspn(sentence, "}"), named = strcspn(sentence, ":}");
        snprintf(name, sizeof(name), "%.*s", (int)named - 1, sentence + 1);
        const json_t *member = member_of(name, answer, arguments);
        bool is_duration = json_is_integer(member) && strstr(name, "_seconds") != NULL;
        tl_json_show(member, value, sizeof(value));
        if (is_duration)
            tl_duration_format(json_integer_value(member) * 1000, value, sizeof(value));
        tl_terminal_time_of(value, shown, sizeof(shown));
        if (shown[0] == '\0' && named < length)
            snprintf(shown, sizeof(shown), "%.*s", (int)(length - named - 1), sentence + named + 1);
        tl_text_append(out, "%s", shown);
        sentence += length + 1;
    }
}
