/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/text.h"
#include "common/config/mode.h"
#include "common/config/queue_settings.h"
#include "common/config/queue_table.h"
#include "common/config/texts.h"
#include "common/control/call.h"
#include "common/control/settings_json.h"

/* ---- to JSON ---- */

/* "a,b" as a list of texts or numbers. */
static json_t *list_of(const char *text, bool numbers)
{
    json_t *list = json_array();
    while (list != NULL && *text != '\0') {
        size_t length = strcspn(text, ",");
        tl_list_add(&list,
                    numbers ? json_integer(strtoll(text, NULL, 10)) : json_stringn(text, length));
        text += length;
        text += strspn(text, ",");
    }
    return list;
}

static json_t *texts_of(const char *texts)
{
    const char *language, *text = NULL;
    json_t *object = json_object();
    while (object != NULL && (text = tl_texts_next(texts, text, &language)) != NULL)
        tl_object_set(&object, language, json_string(text));
    return object;
}

json_t *tl_setting_to_json(const struct tl_setting *row, const struct tl_queue_settings *settings)
{
    char value[TL_QUEUE_VALUE_MAX];
    tl_setting_get(row, settings, TL_FORM_FILE, value, sizeof(value));
    switch (row->type) {
    case TL_SETTING_BOOL:
        return json_boolean(strcmp(value, "true") == 0);
    case TL_SETTING_NUMBER:
    case TL_SETTING_SIZE:
        return json_integer(strtoll(value, NULL, 10));
    case TL_SETTING_TIME:
        return *value != '\0' ? json_string(value) : json_null();
    case TL_SETTING_LANES:
        return list_of(value, false);
    case TL_SETTING_WEIGHTS:
        return list_of(value, true);
    case TL_SETTING_TEXTS:
        return texts_of((const char *)settings + row->offset);
    default:
        return json_string(value);
    }
}

/* Puts the value where its path says: "rate.admit" into the object "rate". */
static bool put(json_t *object, const char *path, json_t *value)
{
    const char *dot = strchr(path, '.');
    if (dot == NULL)
        return json_object_set_new(object, path, value) == 0;
    char group[TL_SETTING_PATH_MAX];
    snprintf(group, sizeof(group), "%.*s", (int)(dot - path), path);
    json_t *inner = json_object_get(object, group);
    if (!json_is_object(inner)) { /* a steered capacity is no number, but has a max, too */
        inner = json_pack("{s:O*}", "max", inner);
        if (json_object_set_new(object, group, inner) != 0) {
            json_decref(value);
            return false;
        }
    }
    return json_object_set_new(inner, dot + 1, value) == 0;
}

json_t *tl_settings_to_json(const struct tl_queue_settings *settings)
{
    size_t n;
    const struct tl_setting *rows = tl_queue_table(&n);
    json_t *object = json_object();
    for (size_t i = 0; object != NULL && i < n; i++) {
        if (strcmp(rows[i].path, "capacity.min") == 0 && settings->capacity_min == 0)
            continue;
        if (!put(object, rows[i].path, tl_setting_to_json(&rows[i], settings))) {
            json_decref(object);
            object = NULL;
        }
    }
    return object;
}

/* The stored text of a member of the record. */
static json_t *recorded(const char *name, const json_t *stored)
{
    size_t n;
    char shown[TL_QUEUE_VALUE_MAX];
    const char *text = json_string_value(stored);
    const struct tl_setting *rows = tl_queue_table(&n);
    const struct tl_setting *row = tl_setting_find(rows, n, name, NULL);
    struct tl_queue_settings settings = {0};
    if (strcmp(name, "notice") == 0)
        return tl_notice_value(text, json_string_length(stored));
    if (strcmp(name, "until") == 0 || strcmp(name, "recover_until") == 0)
        return tl_call_time(strtoll(text, NULL, 10));
    if (row != NULL && row->type == TL_SETTING_TEXTS &&
        tl_setting_set(row, &settings, text, TL_FORM_STORE, NULL))
        return tl_setting_to_json(row, &settings);
    return json_string(tl_queue_setting_show(name, text, shown));
}

json_t *tl_settings_record_to_json(const char *text)
{
    const char *name;
    void *next;
    json_t *member, *object = json_loads(text, 0, NULL);
    if (object == NULL)
        return json_null();
    json_object_foreach_safe(object, next, name, member)
    {
        if (json_is_string(member) &&
            json_object_set_new(object, name, recorded(name, member)) != 0) {
            json_decref(object);
            return NULL;
        }
    }
    return object;
}

/* ---- from JSON ---- */

/* The defaults in place of what is there, except the mode. */
static void begin_whole(struct tl_settings_wish *wish, const struct tl_section *section)
{
    enum tl_queue_mode mode = wish->settings.mode;
    tl_queue_settings_defaults(&wish->settings);
    wish->settings.mode = mode;
    for (size_t i = 0; i < section->n; i++)
        wish->places[i].line = strcmp(section->rows[i].path, "mode") != 0 ? 1 : 0;
}

bool tl_settings_wish_read(struct tl_settings_wish *wish, const json_t *object, bool whole,
                           struct tl_error *err)
{
    const struct tl_queue_settings before = wish->settings;
    struct tl_yaml_place given[TL_QUEUE_ROWS_MAX] = {0};
    struct tl_error problem = {0};
    struct tl_section section = {
        .owner = "", .base = &wish->settings, .places = given, .mistakes = &wish->mistakes};
    section.rows = tl_queue_table(&section.n);
    wish->mistakes.n = 0;
    memset(wish->places, 0, sizeof(wish->places));
    if (whole)
        begin_whole(wish, &section);
    if (object == NULL)
        return true;
    struct tl_yaml *tree = tl_yaml_of_json(object, &problem);
    if (tree != NULL)
        tl_settings_read(&section, tree);
    tl_yaml_free(&tree);
    for (size_t i = 0; i < section.n; i++)
        if (given[i].line > 0)
            wish->places[i] = given[i];
    if (problem.kind == TL_OK && wish->mistakes.n == 0 &&
        tl_mode_change(&before, &wish->settings, &problem))
        (void)tl_queue_settings_validate(&wish->settings, &problem);
    if (problem.kind == TL_ERR_NOMEM)
        return tl_error_set(err, TL_ERR_NOMEM, "%s", problem.text);
    if (problem.kind != TL_OK)
        tl_mistakes_add(&wish->mistakes, "", &problem);
    return true;
}

/* A character that was cut in two at the end goes. */
static void trim(char *text)
{
    for (size_t length = strlen(text); length > 0 && !tl_utf8_valid(text); length--)
        text[length - 1] = '\0';
}

json_t *tl_settings_wish_errors(const struct tl_settings_wish *wish)
{
    json_t *errors = json_array();
    for (size_t i = 0; i < wish->mistakes.n && i < TL_MISTAKES_MAX; i++) {
        struct tl_mistake mistake = wish->mistakes.list[i];
        trim(mistake.setting);
        trim(mistake.err.text);
        tl_list_add(&errors,
                    json_pack("{s:s, s:s}", "name", mistake.setting, "detail", mistake.err.text));
    }
    return errors;
}
