#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/quote.h"
#include "common/config/table.h"
#include "common/store/queue.h"

#include "ctl/change_text.h"
#include "ctl/command.h"
#include "ctl/session.h"

/* The workers' configuration may be another one, so this is no reason to refuse. */
static void warn_without_service(const struct tl_config *config)
{
    struct tl_error err = {0};
    if (!tl_config_has_service(config, &err))
        fprintf(stderr, "warning: workers with this configuration refuse newcomers: %s\n",
                err.text);
}

/* NAME=VALUE as a change; its name is copied to name. The file's rate.admit is rate_admit. */
static bool read_assignment(const char *assignment, char *name, size_t size,
                            struct tl_queue_change *change, struct tl_error *err)
{
    const char *equals = strchr(assignment, '=');
    size_t length = equals != NULL ? (size_t)(equals - assignment) : 0;
    if (length == 0 || length >= size) {
        char quoted[96];
        tl_quote(assignment, quoted, sizeof(quoted));
        return tl_error_set(err, TL_ERR_INVALID, "%s: expected NAME=VALUE, as in capacity=20",
                            quoted);
    }
    memcpy(name, assignment, length);
    name[length] = '\0';
    for (char *dot = strchr(name, '.'); dot != NULL; dot = strchr(dot, '.'))
        *dot = '_';
    *change = (struct tl_queue_change){.name = name, .value = equals + 1};
    return true;
}

/* Settings that belong together, such as policy and rate, change in one step. */
static bool set_all(struct tl_redis *redis, const struct tl_keys *keys,
                    const struct tl_ctl_options *options, const struct tl_actor *actor,
                    struct tl_changes_made *made, struct tl_error *err)
{
    size_t n = (size_t)options->n_words - 1;
    struct tl_queue_change *list = calloc(n, sizeof(*list));
    char(*names)[TL_SETTING_PATH_MAX] = calloc(n, sizeof(*names));
    if (list == NULL || names == NULL) {
        free(list);
        free(names);
        return tl_error_set(err, TL_ERR_NOMEM, "no memory for %zu settings", n);
    }
    bool ok = true;
    for (size_t i = 0; ok && i < n; i++)
        ok = read_assignment(options->words[i + 1], names[i], sizeof(names[i]), &list[i], err);
    const struct tl_queue_changes changes = {.list = list, .n = n};
    ok = ok && tl_queue_configure_all(redis, keys, &changes, actor, made, err);
    free(list);
    free(names);
    return ok;
}

/* Is this the setting that the assignment NAME=VALUE names? */
static bool is_assigned(const char *assignment, const char *name)
{
    size_t length = strlen(name);
    for (size_t i = 0; i < length; i++)
        if ((assignment[i] == '.' ? '_' : assignment[i]) != name[i])
            return false;
    return assignment[length] == '=';
}

/* Each setting as it is and was; then what was asked for and was so before. */
static bool report(const struct tl_ctl_options *options, const struct tl_changes_made *made,
                   struct tl_error *err)
{
    struct tl_text out = {0};
    json_t *before = tl_change_members(made->before, err);
    json_t *after = before != NULL ? tl_change_members(made->after, err) : NULL;
    for (void *at = json_object_iter(after); at != NULL; at = json_object_iter_next(after, at)) {
        const char *name = json_object_iter_key(at);
        const char *old = json_string_value(json_object_get(before, name));
        tl_text_append(&out, "%s: ", options->words[0]);
        tl_change_value(&out, name, json_string_value(json_object_iter_value(at)));
        tl_change_was(&out, name, old);
    }
    for (int i = 1; after != NULL && i < options->n_words; i++) {
        bool found = false;
        for (void *at = json_object_iter(after); at != NULL && !found;
             at = json_object_iter_next(after, at))
            found = is_assigned(options->words[i], json_object_iter_key(at));
        if (!found)
            tl_text_append(&out, "%s: %s (as before)\n", options->words[0], options->words[i]);
    }
    bool ok =
        after != NULL && (!out.failed || tl_error_set(err, TL_ERR_NOMEM,
                                                      "the settings were changed, but there is "
                                                      "no memory to show them"));
    if (ok)
        fputs(out.data, stdout);
    json_decref(before);
    json_decref(after);
    tl_text_free(&out);
    return ok;
}

int tl_command_set(const struct tl_ctl_options *options)
{
    struct tl_error err = {0};
    struct tl_ctl_session session;
    struct tl_keys keys;
    struct tl_changes_made made = {0};
    if (!tl_ctl_session_open(&session, options, &err))
        return tl_ctl_fail(TL_EXIT_FAILED, &err);
    struct tl_redis *redis = tl_ctl_session_redis(&session, options->words[0], &err);
    bool ok = redis != NULL && tl_ctl_session_keys(&session, options->words[0], &keys, &err) &&
              set_all(redis, &keys, options, &session.actor, &made, &err) &&
              report(options, &made, &err);
    tl_changes_made_free(&made);
    for (int i = 1; ok && i < options->n_words; i++) {
        if (strcmp(options->words[i], "challenge=external") == 0)
            warn_without_service(session.config);
    }
    tl_ctl_session_close(&session);
    return ok ? TL_EXIT_OK : tl_ctl_fail(tl_ctl_status_of(&err), &err);
}

int tl_command_notice(const struct tl_ctl_options *options)
{
    struct tl_error err = {0};
    struct tl_ctl_session session;
    struct tl_keys keys;
    if (!tl_ctl_session_open(&session, options, &err))
        return tl_ctl_fail(TL_EXIT_FAILED, &err);
    struct tl_redis *redis = tl_ctl_session_redis(&session, options->words[0], &err);
    bool ok = redis != NULL && tl_ctl_session_keys(&session, options->words[0], &keys, &err) &&
              tl_queue_notice(redis, &keys, options->words[1], &session.actor, &err);
    tl_ctl_session_close(&session);
    if (!ok)
        return tl_ctl_fail(tl_ctl_status_of(&err), &err);
    printf("%s: %s\n", options->words[0],
           options->words[1][0] != '\0' ? "notice set" : "notice removed");
    return TL_EXIT_OK;
}
