/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/config/config.h"
#include "common/config/queue_settings.h"
#include "common/config/table.h"

#include "ctl/calls/assignments.h"
#include "ctl/calls/call.h"
#include "ctl/calls/change_text.h"
#include "ctl/calls/shrink.h"
#include "ctl/shell/json.h"

/* Is this the setting, by its name in the store, that the assignment NAME=VALUE names? */
static bool is_assigned(const char *assignment, const char *name)
{
    char text[TL_SETTING_PATH_MAX] = "";
    size_t length = strcspn(assignment, "=");
    const char *stored = text;
    snprintf(text, sizeof(text), "%.*s", (int)length, assignment);
    tl_queue_settings_plain(&stored, assignment[length] == '=' ? assignment + length + 1 : "");
    return strcmp(stored, name) == 0;
}

/* Each setting as it is and was; then what was asked for and was so before. */
static void describe(const struct tl_ctl_options *options, const json_t *changed,
                     struct tl_text *out)
{
    const json_t *before = json_object_get(changed, "before");
    const char *name, *queue = options->words[0];
    json_t *value;
    json_object_foreach(json_object_get(changed, "after"), name, value)
    {
        tl_text_append(out, "%s: ", queue);
        tl_change_value(out, name, json_string_value(value));
        tl_change_was(out, name, json_string_value(json_object_get(before, name)));
    }
    for (int i = 1; i < options->n_words; i++) {
        bool found = false;
        json_object_foreach(json_object_get(changed, "after"), name, value)
        {
            found = found || is_assigned(options->words[i], name);
        }
        if (!found)
            tl_text_append(out, "%s: %s (as before)\n", queue, options->words[i]);
    }
}

/* What the settings of a queue are compared with. */
struct wish {
    const char *queue;
    const json_t *settings;
    struct tl_text shrinks;
};

static void note_shrink(void *context, const char *name, const json_t *before)
{
    struct wish *wish = context;
    const json_t *after = json_object_get(wish->settings, name);
    if (json_is_string(before) && json_is_string(after))
        tl_shrink_note(&wish->shrinks, wish->queue, name, json_string_value(before),
                       json_string_value(after));
}

/* Asks where a time becomes much shorter than it is now. Settings that cannot be read are left to
 * the change: it may be what puts them right, and says what is wrong. */
static int confirm(const struct tl_ctl_options *options, struct tl_ctl_call *call,
                   const char *target, const json_t *settings)
{
    struct wish wish = {.queue = options->words[0], .settings = settings};
    const struct tl_ctl_ask ask = {.method = "GET", .target = target};
    struct tl_control_answer queue = {0};
    struct tl_error unused;
    if (!options->yes && tl_ctl_call_ask(call, &ask, &queue, &unused))
        tl_json_flat(json_object_get(queue.body, "settings"), note_shrink, &wish);
    tl_control_answer_clear(&queue);
    return tl_shrink_confirm(options, &wish.shrinks);
}

/* The workers' configuration may be another one, so this is no reason to refuse. */
static void warn_without_service(const struct tl_ctl_options *options, const json_t *after)
{
    struct tl_error err = {0};
    if (options->server != NULL || strcmp(tl_json_text(after, "challenge"), "external") != 0)
        return;
    const struct tl_config *config = tl_config_load(options->config, &err);
    if (config != NULL && !tl_config_has_service(config, &err))
        fprintf(stderr, "warning: workers with this configuration refuse newcomers: %s\n",
                err.text);
    tl_config_free(&config);
}

int tl_command_set(const struct tl_ctl_options *options)
{
    struct tl_error err = {0};
    struct tl_text out = {0};
    char target[TL_CTL_TARGET_MAX];
    const char *queue = options->words[0];
    json_t *answer = NULL;
    if (!tl_ctl_target(target, "queues", queue, NULL))
        return TL_EXIT_PROBLEM;
    json_t *settings = tl_assignments_read(options->n_words - 1, options->words + 1, &err);
    if (settings == NULL)
        return tl_ctl_fail(tl_ctl_status_of(&err), &err);
    struct tl_ctl_call *call = tl_ctl_call_open(options, &err);
    const struct tl_ctl_ask ask = {.method = "PATCH", .target = target, .body = settings};
    int status =
        call != NULL ? confirm(options, call, target, settings) : tl_ctl_fail(TL_EXIT_FAILED, &err);
    if (status == TL_EXIT_OK)
        status = tl_ctl_call_body(call, &ask, &answer);
    tl_ctl_call_close(&call);
    json_decref(settings);
    if (status != TL_EXIT_OK)
        return status;
    warn_without_service(options, json_object_get(answer, "settings"));
    bool ok = true;
    if (options->json) {
        ok = tl_json_write(json_incref(answer));
    } else {
        describe(options, json_object_get(answer, "changed"), &out);
        ok = !out.failed && fputs(out.data, stdout) >= 0;
    }
    tl_text_free(&out);
    json_decref(answer);
    if (!ok)
        tl_error_set(&err, TL_ERR_NOMEM,
                     "the settings were changed, but there is no memory to show them");
    return ok ? TL_EXIT_OK : tl_ctl_fail(TL_EXIT_FAILED, &err);
}
