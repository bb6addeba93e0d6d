/* SPDX-License-Identifier: Apache-2.0 */
/* Settings on the command line: `queue set`, and what other verbs do with settings, too. */
#include <stdlib.h>
#include <string.h>

#include "common/base/units.h"
#include "common/config/queue_settings.h"
#include "common/config/queue_table.h"

#include "ctl/calls/calls.h"

enum { NAME_MAX_BYTES = 128, FEWER_TIMES = 10 };

/* ---- NAME=VALUE ---- */

/* The setting of this name; NULL: there is none. */
static const struct tl_setting *find(const char *name)
{
    size_t n;
    const char *language;
    const struct tl_setting *rows = tl_queue_table(&n);
    return tl_setting_find(rows, n, name, &language);
}

json_t *tl_assignments_read(int n, char *const *words, struct tl_error *err)
{
    char name[NAME_MAX_BYTES], quoted[96];
    json_t *object = json_object();
    bool ok = true;
    for (int i = 0; ok && i < n; i++) {
        size_t length = strcspn(words[i], "=");
        tl_quote(words[i], quoted, sizeof(quoted));
        if (length == 0 || words[i][length] == '\0' || length >= sizeof(name)) {
            ok = tl_error_set(err, TL_ERR_INVALID, "%s: expected SETTING=VALUE, as in capacity=20",
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
        else /* a name that is not UTF-8 is no setting either */
            ok = json_object_set_new(object, name, json_string(value)) == 0 ||
                 tl_error_set(err, TL_ERR_INVALID, "%s: not UTF-8", quoted);
    }
    if (!ok) {
        json_decref(object);
        object = NULL;
    }
    return object;
}

/* ---- times that become much shorter ---- */

void tl_shrink_note(struct tl_text *what, const char *queue, const char *name, const char *before,
                    const char *after)
{
    const struct tl_setting *row = find(name);
    int64_t before_ms, after_ms;
    if (row != NULL && row->type == TL_SETTING_DURATION &&
        tl_duration_parse(before, &before_ms, NULL) && tl_duration_parse(after, &after_ms, NULL) &&
        after_ms < before_ms / FEWER_TIMES)
        tl_text_append(what, "%s%s: %s becomes %s, less than a tenth of what it was (%s).",
                       what->length > 0 ? " " : "", queue, name, after, before);
}

int tl_shrink_confirm(const struct tl_ctl_options *options, struct tl_text *what)
{
    const char *said = tl_xtext(what);
    int status = *said != '\0' ? tl_ctl_confirm(options, said, NULL) : TL_EXIT_OK;
    tl_text_free(what);
    return status;
}

/* ---- set ---- */

/* Is this the setting that the assignment NAME=VALUE names? */
static bool is_assigned(const char *assignment, const char *name)
{
    char text[NAME_MAX_BYTES];
    snprintf(text, sizeof(text), "%.*s", (int)strcspn(assignment, "="), assignment);
    const struct tl_setting *row = find(text);
    return row != NULL && strcmp(row->path, name) == 0;
}

/* Each setting as it is and was; then what was asked for and was so before. */
static void describe(const struct tl_ctl_options *options, const json_t *changed,
                     struct tl_text *out)
{
    const json_t *before = json_object_get(changed, "before");
    const json_t *after = json_object_get(changed, "after");
    const char *name, *queue = options->words[0];
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)after, name, value)
    {
        tl_text_append(out, "%s: ", queue);
        tl_change_value(out, name, value);
        tl_change_was(out, json_object_get(before, name));
    }
    for (int i = 1; i < options->n_words; i++) {
        bool found = false;
        json_object_foreach((json_t *)(uintptr_t)after, name, value)
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
                   const json_t *settings)
{
    struct wish wish = {.queue = options->words[0], .settings = settings};
    struct tl_error unused;
    if (options->yes)
        return TL_EXIT_OK;
    const struct tl_ctl_ask ask = {.operation = "getQueue",
                                   .arguments = json_pack("{s:s}", "queue", wish.queue)};
    json_t *queue = tl_ctl_call_get(call, &ask, &unused);
    tl_json_flat(json_object_get(queue, "settings"), note_shrink, &wish);
    json_decref(queue);
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
    json_t *answer = NULL;
    json_t *settings = tl_assignments_read(options->n_words - 1, options->words + 1, &err);
    if (settings == NULL)
        return tl_ctl_fail(tl_ctl_status_of(&err), &err);
    struct tl_ctl_call *call = tl_ctl_call_open(options, &err);
    int status =
        call != NULL ? confirm(options, call, settings) : tl_ctl_fail(TL_EXIT_FAILED, &err);
    if (status == TL_EXIT_OK) {
        const struct tl_ctl_ask ask = {.operation = "patchQueue",
                                       .arguments = json_pack("{s:s}", "queue", options->words[0]),
                                       .body = json_incref(settings)};
        status = tl_ctl_call_body(call, &ask, &answer);
    }
    json_decref(settings);
    tl_ctl_call_close(&call);
    if (status != TL_EXIT_OK)
        return status;
    warn_without_service(options, json_object_get(answer, "settings"));
    if (options->output != TL_OUTPUT_TABLE) {
        tl_data_write(options->output, json_incref(answer));
    } else {
        describe(options, json_object_get(answer, "changed"), &out);
        tl_text_print(&out);
    }
    json_decref(answer);
    return TL_EXIT_OK;
}
