#include <stdio.h>
#include <string.h>

#include "common/base/quote.h"
#include "common/base/units.h"
#include "common/config/queue_settings.h"

#include "ctl/change_text.h"

enum { SHOWN_MAX = 100 }; /* bytes of a value */

/* Times that are no settings: of a block and of a recovery. */
static bool is_time(const char *name)
{
    return strcmp(name, "until") == 0 || strcmp(name, "recover_until") == 0;
}

static bool is_plain(const char *value)
{
    size_t n = strlen(value);
    for (size_t i = 0; i < n; i++)
        if (value[i] <= ' ' || value[i] > '~' || value[i] == '"' || value[i] == ',')
            return false;
    return n > 0 && n <= SHOWN_MAX;
}

/* The name and the value as people read them. */
static void show(const char *name, const char *value, const char **shown_name,
                 char shown[SHOWN_MAX + 1])
{
    char text[TL_UNITS_TEXT_MAX];
    const char *words;
    uint64_t ms;
    tl_queue_setting_show(name, value, shown_name, &words, text);
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
    const char *shown_name;
    show(name, value, &shown_name, shown);
    tl_text_append(out, "%s=%s", shown_name, shown);
}

void tl_change_was(struct tl_text *out, const char *name, const char *old)
{
    char shown[SHOWN_MAX + 1];
    const char *shown_name;
    show(name, old != NULL ? old : "", &shown_name, shown);
    tl_text_append(out, " (was %s)\n", old != NULL ? shown : "not set");
}

static void describe_member(struct tl_text *out, const char *name, const char *old,
                            const char *value)
{
    char shown[SHOWN_MAX + 1];
    const char *shown_name;
    const char *separator = out->length > 0 ? ", " : "";
    show(name, old != NULL ? old : value, &shown_name, shown);
    tl_text_append(out, "%s%s ", separator, shown_name);
    if (old != NULL && value != NULL && strcmp(old, value) != 0) {
        tl_text_append(out, "%s -> ", shown);
        show(name, value, &shown_name, shown);
    }
    tl_text_append(out, "%s%s", shown, value == NULL ? " (gone)" : "");
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
    void *end = NULL;
    for (void *at = json_object_iter((json_t *)before); at != end;
         at = json_object_iter_next((json_t *)before, at)) {
        name = json_object_iter_key(at);
        if (is_known(name, after))
            continue;
        value = json_object_get(after, name);
        describe_member(out, name, json_string_value(json_object_iter_value(at)),
                        json_string_value(value));
    }
    for (void *at = json_object_iter((json_t *)after); at != end;
         at = json_object_iter_next((json_t *)after, at)) {
        name = json_object_iter_key(at);
        if (json_object_get(before, name) == NULL && !is_known(name, after))
            describe_member(out, name, NULL, json_string_value(json_object_iter_value(at)));
    }
}
