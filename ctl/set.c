#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/config/config.h"
#include "common/config/queue_settings.h"
#include "common/config/table.h"

#include "ctl/assignments.h"
#include "ctl/call.h"
#include "ctl/change_text.h"
#include "ctl/json.h"

/* Is this the setting, by its name in the store, that the assignment NAME=VALUE names? */
static bool is_assigned(const char *assignment, const char *name)
{
    char text[TL_SETTING_PATH_MAX] = "";
    size_t length = strcspn(assignment, "=");
    const char *stored = text;
    snprintf(text, sizeof(text), "%.*s", (int)length, assignment);
    for (char *dot = strchr(text, '.'); dot != NULL; dot = strchr(dot, '.'))
        *dot = '_';
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
    json_t *answer;
    if (!tl_ctl_target(target, "queues", queue, NULL))
        return TL_EXIT_PROBLEM;
    json_t *settings = tl_assignments_read(options->n_words - 1, options->words + 1, &err);
    if (settings == NULL)
        return tl_ctl_fail(tl_ctl_status_of(&err), &err);
    const struct tl_ctl_ask ask = {.method = "PATCH", .target = target, .body = settings};
    int status = tl_ctl_call_once(options, &ask, &answer);
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
