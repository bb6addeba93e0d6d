/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>
#include <stdio.h>

#include "ctl/shell/json.h"

bool tl_json_write(json_t *value)
{
    if (value == NULL)
        return false;
    bool ok = json_dumpf(value, stdout, JSON_INDENT(2)) == 0 && putchar('\n') != EOF &&
              fflush(stdout) == 0;
    json_decref(value);
    return ok;
}

const char *tl_json_text(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text != NULL ? text : "";
}

json_int_t tl_json_number(const json_t *object, const char *name)
{
    return json_integer_value(json_object_get(object, name));
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

void tl_json_flat(const json_t *object,
                  void (*each)(void *context, const char *name, const json_t *value), void *context)
{
    const char *name, *inner_name;
    json_t *value, *inner;
    json_object_foreach((json_t *)(uintptr_t)object, name, value)
    {
        char path[128];
        if (!json_is_object(value)) {
            each(context, name, value);
            continue;
        }
        json_object_foreach(value, inner_name, inner)
        {
            snprintf(path, sizeof(path), "%s.%s", name, inner_name);
            each(context, path, inner);
        }
    }
}
