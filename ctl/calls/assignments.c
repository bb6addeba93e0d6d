/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "common/base/text.h"
#include "common/config/queue_table.h"

#include "ctl/calls/assignments.h"

enum { NAME_MAX_BYTES = 128 };

json_t *tl_assignment_value(const char *name, const char *value)
{
    size_t n;
    const struct tl_setting *rows = tl_queue_table(&n);
    for (size_t i = 0; i < n; i++) {
        if (strcmp(rows[i].path, name) == 0 && rows[i].type == TL_SETTING_BOOL &&
            (strcmp(value, "true") == 0 || strcmp(value, "false") == 0))
            return json_boolean(strcmp(value, "true") == 0);
    }
    return json_string(value);
}

json_t *tl_assignments_read(int n, char *const *words, struct tl_error *err)
{
    char name[NAME_MAX_BYTES], quoted[96];
    json_t *object = json_object();
    bool ok = object != NULL || tl_error_set(err, TL_ERR_NOMEM, "no memory for the settings");
    for (int i = 0; ok && i < n; i++) {
        size_t length = strcspn(words[i], "=");
        tl_quote(words[i], quoted, sizeof(quoted));
        if (length == 0 || words[i][length] == '\0' || length >= sizeof(name)) {
            ok = tl_error_set(err, TL_ERR_INVALID, "%s: expected NAME=VALUE, as in capacity=20",
                              quoted);
            break;
        }
        memcpy(name, words[i], length);
        name[length] = '\0';
        const char *value = words[i] + length + 1;
        if (json_object_get(object, name) != NULL)
            ok = tl_error_set(err, TL_ERR_INVALID, "%s: this setting is given twice", quoted);
        else if (!tl_utf8_valid(value))
            ok = tl_error_set(err, TL_ERR_INVALID, "%s: not UTF-8", quoted);
        else if (json_object_set_new(object, name, tl_assignment_value(name, value)) != 0)
            ok = tl_error_set(err, TL_ERR_NOMEM, "%s: no memory for it", quoted);
    }
    if (!ok) {
        json_decref(object);
        object = NULL;
    }
    return object;
}
