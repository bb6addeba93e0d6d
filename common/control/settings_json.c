/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/text.h"
#include "common/base/units.h"
#include "common/config/mode.h"
#include "common/config/queue_table.h"
#include "common/control/call.h"
#include "common/control/settings_json.h"

/* ---- to JSON ---- */

/* "a,b" as a list of texts or numbers. */
static json_t *list_of(const char *text, bool numbers)
{
    json_t *list = json_array();
    while (list != NULL && *text != '\0') {
        size_t length = strcspn(text, ",");
        json_t *item = numbers ? json_integer(strtoll(text, NULL, 10)) : json_stringn(text, length);
        if (json_array_append_new(list, item) != 0) {
            json_decref(list);
            return NULL;
        }
        text += length;
        text += strspn(text, ",");
    }
    return list;
}

/* The value of a row as text of the store, as JSON. */
static json_t *value_of(const struct tl_setting *row, const char *value)
{
    char text[TL_UNITS_TEXT_MAX];
    switch (row->type) {
    case TL_SETTING_BOOL:
        return json_boolean(strcmp(value, "true") == 0);
    case TL_SETTING_NUMBER:
    case TL_SETTING_SIZE:
        return json_integer(strtoll(value, NULL, 10));
    case TL_SETTING_SHARE:
        snprintf(text, sizeof(text), "%.30s%%", value);
        return json_string(text);
    case TL_SETTING_DURATION:
        tl_duration_format(strtoll(value, NULL, 10), text, sizeof(text));
        return json_string(text);
    case TL_SETTING_TIME:
        tl_time_format(strtoll(value, NULL, 10), text, sizeof(text));
        return strtoll(value, NULL, 10) != 0 ? json_string(text) : json_null();
    case TL_SETTING_LANES:
        return list_of(value, false);
    case TL_SETTING_WEIGHTS:
        return list_of(value, true);
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
    char value[TL_QUEUE_VALUE_MAX];
    const char *key;
    size_t n;
    const struct tl_setting *rows = tl_queue_table(&n);
    json_t *object = json_object();
    for (size_t i = 0; object != NULL && i < n; i++) {
        if (strcmp(rows[i].path, "capacity.min") == 0 && settings->capacity_min == 0)
            continue;
        tl_queue_settings_get(settings, i, &key, value, sizeof(value));
        if (!put(object, rows[i].path, value_of(&rows[i], value))) {
            json_decref(object);
            object = NULL;
        }
    }
    return object;
}

json_t *tl_settings_record_to_json(const char *text)
{
    char shown[TL_UNITS_TEXT_MAX];
    const char *name, *value;
    void *next;
    json_t *member, *object = json_loads(text, 0, NULL);
    if (object == NULL)
        return json_null();
    json_object_foreach_safe(object, next, name, member)
    {
        if (!json_is_string(member))
            continue;
        const char *kept = json_string_value(member);
        value = tl_queue_setting_show(name, kept, shown);
        json_t *said = strcmp(name, "notice") == 0
                           ? tl_notice_value(kept, json_string_length(member))
                       : strcmp(name, "until") == 0 || strcmp(name, "recover_until") == 0
                           ? tl_call_time(strtoll(kept, NULL, 10))
                           : json_string(value);
        if (json_object_set_new(object, name, said) != 0) {
            json_decref(object);
            return NULL;
        }
    }
    return object;
}

/* ---- from JSON ---- */

static bool refuse(struct tl_settings_wish *wish, const char *name, const char *detail,
                   struct tl_error *err)
{
    json_t *error = json_pack("{s:s, s:s}", "name", name, "detail", detail);
    return json_array_append_new(wish->errors, error) == 0 ||
           tl_error_set(err, TL_ERR_NOMEM, "no memory for what is wrong with the settings");
}

/* The row of a member's path. */
static const struct tl_setting *find_row(const char *path, size_t *index)
{
    size_t n;
    const struct tl_setting *rows = tl_queue_table(&n);
    for (size_t i = 0; i < n; i++)
        if (strcmp(rows[i].path, path) == 0) {
            *index = i;
            return &rows[i];
        }
    return NULL;
}

/* One element of a list, after those in text. */
static bool append_item(const json_t *item, char *text, size_t size)
{
    size_t used = strlen(text);
    const char *comma = used > 0 ? "," : "";
    int n = -1;
    if (json_is_string(item) && strchr(json_string_value(item), ',') == NULL)
        n = snprintf(text + used, size - used, "%s%s", comma, json_string_value(item));
    else if (json_is_integer(item))
        n = snprintf(text + used, size - used, "%s%" JSON_INTEGER_FORMAT, comma,
                     json_integer_value(item));
    return n >= 0 && (size_t)n < size - used;
}

/* The text of a value as the table reads it. False: it is of a type that no setting has, or too
 * long. */
static bool text_of(const struct tl_setting *row, const json_t *value,
                    char text[TL_QUEUE_VALUE_MAX])
{
    size_t size = TL_QUEUE_VALUE_MAX;
    bool is_list = row->type == TL_SETTING_LANES || row->type == TL_SETTING_WEIGHTS;
    int n = -1;
    text[0] = '\0';
    if (json_is_null(value))
        n = snprintf(text, size, "%s", row->fallback);
    else if (json_is_boolean(value) && row->type == TL_SETTING_BOOL)
        n = snprintf(text, size, "%s", json_is_true(value) ? "true" : "false");
    else if (json_is_integer(value) && !is_list)
        n = snprintf(text, size, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    else if (json_is_real(value) && row->type == TL_SETTING_SHARE)
        n = snprintf(text, size, "%.6f", json_real_value(value));
    else if (json_is_string(value) && row->type != TL_SETTING_BOOL)
        n = snprintf(text, size, "%s", json_string_value(value));
    if (n >= 0 || !is_list || !json_is_array(value))
        return n >= 0 && (size_t)n < size;
    for (size_t i = 0; i < json_array_size(value); i++)
        if (!append_item(json_array_get(value, i), text, size))
            return false;
    return true;
}

/* One member; group "": not of an inner object. */
static bool read_member(struct tl_settings_wish *wish, const char *group, const char *name,
                        const json_t *value, struct tl_error *err)
{
    char path[2 * TL_SETTING_PATH_MAX];
    char quoted[96];
    size_t row;
    int n = snprintf(path, sizeof(path), "%s%s%s", group, *group != '\0' ? "." : "", name);
    bool is_max = strcmp(path, "capacity.max") == 0;
    wish->fixed = wish->fixed || strcmp(path, "capacity") == 0;
    const struct tl_setting *setting =
        n > 0 && (size_t)n < sizeof(path) ? find_row(is_max ? "capacity" : path, &row) : NULL;
    if (setting == NULL) {
        struct tl_queue_settings unused;
        struct tl_error problem = {0};
        tl_queue_settings_defaults(&unused);
        tl_quote(path, quoted, sizeof(quoted));
        if (tl_queue_settings_set(&unused, path, "", TL_FORM_FILE, &problem))
            tl_error_set(&problem, TL_ERR_INVALID, "%s is not a setting of a queue", quoted);
        return refuse(wish, path, problem.text, err);
    }
    if (wish->given[row])
        return refuse(wish, setting->path, "given twice", err);
    if (!text_of(setting, value, wish->values[row]))
        return refuse(wish, setting->path,
                      "the value is too long, or of a type that this setting does not have", err);
    wish->given[row] = true;
    return true;
}

static bool read_members(struct tl_settings_wish *wish, const json_t *object, struct tl_error *err)
{
    const char *name;
    const char *inner_name;
    json_t *value;
    json_t *inner;
    json_object_foreach((json_t *)object, name, value)
    {
        if (!json_is_object(value)) {
            if (!read_member(wish, "", name, value, err))
                return false;
            continue;
        }
        json_object_foreach(value, inner_name, inner)
        {
            if (!read_member(wish, name, inner_name, inner, err))
                return false;
        }
    }
    return true;
}

/* Does this setting keep its value when the object that replaces all does not name it? `mode` does,
 * and default_lane follows the lanes. */
static bool stays(const struct tl_settings_wish *wish, const struct tl_setting *row)
{
    size_t lanes;
    if (strcmp(row->path, "default_lane") == 0)
        return find_row("lanes", &lanes) != NULL && wish->given[lanes];
    return strcmp(row->path, "mode") == 0;
}

bool tl_settings_wish_read(struct tl_settings_wish *wish, const json_t *object, bool whole,
                           struct tl_error *err)
{
    size_t n;
    const struct tl_setting *rows = tl_queue_table(&n);
    *wish = (struct tl_settings_wish){.list = calloc(n, sizeof(*wish->list)),
                                      .values = calloc(n, sizeof(*wish->values)),
                                      .given = calloc(n, sizeof(*wish->given)),
                                      .errors = json_array()};
    if (wish->list == NULL || wish->values == NULL || wish->given == NULL || wish->errors == NULL)
        return tl_error_set(err, TL_ERR_NOMEM, "no memory for the settings");
    if (!read_members(wish, object, err))
        return false;
    for (size_t i = 0; i < n; i++) {
        bool is_fixed = wish->fixed && strcmp(rows[i].path, "capacity.min") == 0;
        if (!wish->given[i] && !is_fixed && (!whole || stays(wish, &rows[i])))
            continue;
        if (!wish->given[i])
            snprintf(wish->values[i], sizeof(wish->values[i]), "%s", rows[i].fallback);
        wish->list[wish->n++] =
            (struct tl_queue_change){.name = rows[i].path, .value = wish->values[i]};
    }
    return true;
}

bool tl_settings_wish_try(struct tl_settings_wish *wish, struct tl_queue_settings *settings,
                          struct tl_error *err)
{
    const struct tl_queue_settings before = *settings;
    struct tl_error problem = {0};
    size_t row;
    for (size_t i = 0; i < wish->n; i++) {
        if (!tl_queue_settings_set(settings, wish->list[i].name, wish->list[i].value, TL_FORM_FILE,
                                   &problem) &&
            !refuse(wish, find_row(wish->list[i].name, &row)->path, problem.text, err))
            return false;
    }
    if (json_array_size(wish->errors) > 0)
        return true;
    return (tl_mode_change(&before, settings, &problem) &&
            tl_queue_settings_validate(settings, &problem)) ||
           refuse(wish, "", problem.text, err);
}

void tl_settings_wish_free(struct tl_settings_wish *wish)
{
    free(wish->list);
    free(wish->values);
    free(wish->given);
    json_decref(wish->errors);
    *wish = (struct tl_settings_wish){0};
}
