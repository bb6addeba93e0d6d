/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/base/units.h"
#include "common/wire/names.h"
#include "common/words/json.h"

enum {
    SHOWN_MAX = 200,   /* bytes of a value, in a line of a terminal */
    WHOLE_MAX = 16384, /* all that a notice in all languages has */
    YEAR_MAX = 9999,
};

const char *tl_json_text(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text != NULL ? text : "";
}

json_int_t tl_json_number(const json_t *object, const char *name)
{
    return json_integer_value(json_object_get(object, name));
}

uint64_t tl_json_count(const json_t *object, const char *name)
{
    return (uint64_t)tl_json_number(object, name);
}

void tl_terminal_time_of(const char *rfc3339, char *text, size_t size)
{
    int64_t unix_ms;
    struct tm local;
    if (!tl_time_parse(rfc3339, &unix_ms, NULL)) {
        snprintf(text, size, "%s", rfc3339);
        return;
    }
    time_t seconds = (time_t)(unix_ms / 1000);
    text[0] = '\0';
    if (localtime_r(&seconds, &local) == NULL || local.tm_year + 1900 > YEAR_MAX ||
        local.tm_year + 1900 < 0)
        return;
    size_t length = strftime(text, size, "%Y-%m-%dT%H:%M:%S", &local);
    long offset = local.tm_gmtoff / 60;
    if (offset == 0)
        snprintf(text + length, size - length, "Z");
    else
        snprintf(text + length, size - length, "%c%02ld:%02ld", offset < 0 ? '-' : '+',
                 labs(offset) / 60, labs(offset) % 60);
}

static size_t show(const json_t *value, char *text, size_t size)
{
    int n = 0;
    if (json_is_string(value))
        n = snprintf(text, size, "%s", json_string_value(value));
    else if (json_is_integer(value))
        n = snprintf(text, size, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    else if (json_is_real(value))
        n = snprintf(text, size, "%.1f", json_real_value(value));
    else if (json_is_boolean(value))
        n = snprintf(text, size, "%s", json_is_true(value) ? "true" : "false");
    return n > 0 ? (size_t)n : 0;
}

void tl_json_show(const json_t *value, char *text, size_t size)
{
    size_t used = 0, i;
    json_t *item;
    text[0] = '\0';
    if (!json_is_array(value)) {
        (void)show(value, text, size);
        return;
    }
    json_array_foreach(value, i, item)
    {
        if (i > 0 && used + 1 < size)
            text[used++] = ',';
        if (used < size)
            used += show(item, text + used, size - used);
    }
}

/* ---- changes ---- */

/* A value as people read it: times are local, odd bytes are '?', what is longer than `most` is cut.
 * A notice in several languages is "[en] TEXT [ko] TEXT". */
static void append(struct tl_text *out, const json_t *value, size_t most)
{
    char text[WHOLE_MAX + 1], local[WHOLE_MAX + 1];
    const char *language;
    json_t *inner;
    struct tl_text made = {0};
    json_object_foreach((json_t *)(uintptr_t)value, language, inner)
    {
        tl_text_append(&made, "%s[%s] %s", made.length > 0 ? " " : "", language,
                       json_is_string(inner) ? json_string_value(inner) : "");
    }
    tl_json_show(value, text, most + 1);
    tl_terminal_time_of(made.length > 0 ? made.data : text, local, most + 1);
    tl_text_free(&made);
    if (tl_printable(local, strlen(local), most) && strpbrk(local, "\",") == NULL)
        snprintf(text, sizeof(text), "%s", local);
    else
        tl_quote(local, text, most + 1);
    tl_text_append(out, "%s", text);
}

void tl_change_value(struct tl_text *out, const char *name, const json_t *value)
{
    tl_text_append(out, "%s=", name);
    append(out, value, SHOWN_MAX);
}

void tl_change_was(struct tl_text *out, const json_t *old)
{
    tl_text_append(out, " (was ");
    if (old != NULL)
        append(out, old, SHOWN_MAX);
    tl_text_append(out, old != NULL ? ")\n" : "not set)\n");
}

static void describe_member(struct tl_text *out, const char *name, const json_t *before,
                            const json_t *after, size_t most)
{
    tl_text_append(out, "%s%s ", out->length > 0 ? ", " : "", name);
    append(out, before != NULL ? before : after, most);
    if (before != NULL && after != NULL && !json_equal(before, after)) {
        tl_text_append(out, " -> ");
        append(out, after, most);
    }
    tl_text_append(out, "%s", after == NULL ? " (gone)" : "");
}

static void describe(const json_t *change, size_t most, struct tl_text *out)
{
    const char *name;
    json_t *value;
    const json_t *before = json_object_get(change, "before");
    const json_t *after = json_object_get(change, "after");
    if (strcmp(tl_json_text(change, "what"), "create") == 0) {
        tl_text_append(out, "%zu settings", json_object_size(after));
        return;
    }
    json_object_foreach((json_t *)(uintptr_t)before, name, value)
    {
        describe_member(out, name, value, json_object_get(after, name), most);
    }
    json_object_foreach((json_t *)(uintptr_t)after, name, value)
    {
        if (json_object_get(before, name) == NULL)
            describe_member(out, name, NULL, value, most);
    }
}

void tl_change_describe(const json_t *change, struct tl_text *out)
{
    describe(change, SHOWN_MAX, out);
}

void tl_change_describe_whole(const json_t *change, struct tl_text *out)
{
    describe(change, WHOLE_MAX, out);
}
