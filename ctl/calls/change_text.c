/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "common/base/text.h"
#include "common/base/units.h"
#include "common/config/queue_settings.h"
#include "common/wire/names.h"

#include "ctl/calls/change_text.h"

enum { SHOWN_MAX = 200 }; /* bytes of a value */

/* Times that are no settings: of a block and of a recovery. */
static bool is_time(const char *name)
{
    return strcmp(name, "until") == 0 || strcmp(name, "recover_until") == 0;
}

static bool is_plain(const char *value)
{
    return tl_printable(value, strlen(value), SHOWN_MAX) && strpbrk(value, "\",") == NULL;
}

/* The value as people read it. */
static void show(const char *name, const char *value, char shown[SHOWN_MAX + 1])
{
    char text[TL_UNITS_TEXT_MAX];
    uint64_t ms;
    const char *words = tl_queue_setting_show(name, value, text);
    if (is_time(name) && tl_number_parse(value, &ms, NULL) && ms <= INT64_MAX) {
        tl_time_format((int64_t)ms, text, sizeof(text));
        words = ms == 0 ? "never" : text;
    }
    if (is_plain(words))
        snprintf(shown, SHOWN_MAX + 1, "%s", words);
    else
        tl_quote(words, shown, SHOWN_MAX + 1);
}

void tl_change_value(struct tl_text *out, const char *name, const char *value)
{
    char shown[SHOWN_MAX + 1];
    show(name, value, shown);
    tl_text_append(out, "%s=%s", name, shown);
}

void tl_change_was(struct tl_text *out, const char *name, const char *old)
{
    char shown[SHOWN_MAX + 1];
    show(name, old != NULL ? old : "", shown);
    tl_text_append(out, " (was %s)\n", old != NULL ? shown : "not set");
}

/* The member as text; of a notice in several languages "[en] TEXT [ko] TEXT". NULL: there is none.
 */
static const char *text_of(const json_t *members, const char *name, struct tl_text *made)
{
    const json_t *value = json_object_get(members, name);
    const char *language;
    json_t *text;
    if (!json_is_object(value))
        return json_string_value(value);
    json_object_foreach((json_t *)(uintptr_t)value, language, text)
    {
        tl_text_append(made, "%s[%s] %s", made->length > 0 ? " " : "", language,
                       json_is_string(text) ? json_string_value(text) : "");
    }
    return made->data != NULL ? made->data : "";
}

static void describe_member(struct tl_text *out, const char *name, const json_t *before,
                            const json_t *after)
{
    char shown[SHOWN_MAX + 1];
    const char *separator = out->length > 0 ? ", " : "";
    struct tl_text made_old = {0}, made_new = {0};
    const char *old = text_of(before, name, &made_old);
    const char *value = text_of(after, name, &made_new);
    show(name, old != NULL ? old : value != NULL ? value : "", shown);
    tl_text_append(out, "%s%s ", separator, name);
    if (old != NULL && value != NULL && strcmp(old, value) != 0) {
        tl_text_append(out, "%s -> ", shown);
        show(name, value, shown);
    }
    tl_text_append(out, "%s%s", shown, value == NULL ? " (gone)" : "");
    out->failed = out->failed || made_old.failed || made_new.failed;
    tl_text_free(&made_old);
    tl_text_free(&made_new);
}

/* `paused` goes with `mode`. */
static bool is_known(const char *name, const json_t *after)
{
    return strcmp(name, "paused") == 0 && json_object_get(after, "mode") != NULL;
}

void tl_change_describe(struct tl_text *out, const char *what, const json_t *before,
                        const json_t *after)
{
    const char *name;
    json_t *value;
    if (strcmp(what, "create") == 0) {
        tl_text_append(out, "%zu settings", json_object_size(after));
        return;
    }
    json_object_foreach((json_t *)(uintptr_t)before, name, value)
    {
        if (!is_known(name, after))
            describe_member(out, name, before, after);
    }
    json_object_foreach((json_t *)(uintptr_t)after, name, value)
    {
        if (json_object_get(before, name) == NULL && !is_known(name, after))
            describe_member(out, name, before, after);
    }
}
