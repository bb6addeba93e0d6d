/* SPDX-License-Identifier: Apache-2.0 */
/* The body of an admin call, and what reads the most of it: settings of a queue; and the address of
 * a call. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/config/queue_settings.h"
#include "common/control/control.h"
#include "common/control/settings_json.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static void expect(bool holds)
{
    if (!holds)
        abort();
}

/* Settings that are accepted are valid, and are the same after the way through JSON. */
static void read_settings(const json_t *body)
{
    struct tl_settings_wish wish, again;
    struct tl_error err = {0};
    char value[TL_QUEUE_VALUE_MAX];
    char other[TL_QUEUE_VALUE_MAX];
    const char *name;
    tl_queue_settings_defaults(&wish.settings);
    expect(tl_settings_wish_read(&wish, body, true, &err));
    if (wish.mistakes.n > 0) {
        json_t *errors = tl_settings_wish_errors(&wish);
        expect(json_array_size(errors) > 0);
        json_decref(errors);
        return;
    }
    json_t *shown = tl_settings_to_json(&wish.settings);
    expect(tl_queue_settings_validate(&wish.settings, &err) && shown != NULL);
    tl_queue_settings_defaults(&again.settings);
    expect(tl_settings_wish_read(&again, shown, true, &err) && again.mistakes.n == 0);
    for (size_t i = 0; tl_queue_settings_get(&wish.settings, i, &name, value, sizeof(value)); i++) {
        tl_queue_settings_get(&again.settings, i, &name, other, sizeof(other));
        expect(strcmp(value, other) == 0);
    }
    json_decref(shown);
}

static void read_target(const char *text)
{
    struct tl_target target;
    struct tl_error err = {0};
    if (!tl_target_parse(text, &target, &err)) {
        expect(err.kind == TL_ERR_INVALID && err.text[0] != '\0');
        return;
    }
    expect(target.n_segments >= 1 && target.n_segments <= TL_TARGET_SEGMENTS);
    expect(target.n_parameters <= TL_TARGET_PARAMETERS);
    for (size_t i = 0; i < target.n_segments; i++)
        expect(strlen(target.segments[i]) < TL_TARGET_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    struct tl_error err = {0};
    /* Copies of exactly this size, so that reading past the end is noticed. */
    char *text = malloc(length + 1);
    char *raw = malloc(length > 0 ? length : 1);
    expect(text != NULL && raw != NULL);
    if (length > 0) {
        memcpy(text, bytes, length);
        memcpy(raw, bytes, length);
    }
    text[length] = '\0';
    json_t *body = tl_control_read_body(raw, length, &err);
    if (body == NULL)
        expect(err.kind == TL_ERR_INVALID && err.text[0] != '\0');
    else
        read_settings(body);
    json_decref(body);
    read_target(text);
    free(text);
    free(raw);
    return 0;
}
