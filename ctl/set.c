#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/quote.h"
#include "common/config/table.h"
#include "common/store/queue.h"

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
                    const struct tl_ctl_options *options, struct tl_error *err)
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
    ok = ok && tl_queue_configure_all(redis, keys, &changes, err);
    free(list);
    free(names);
    return ok;
}

int tl_command_set(const struct tl_ctl_options *options)
{
    struct tl_error err = {0};
    struct tl_ctl_session session;
    struct tl_keys keys;
    if (!tl_ctl_session_open(&session, options, &err))
        return tl_ctl_fail(TL_EXIT_FAILED, &err);
    struct tl_redis *redis = tl_ctl_session_redis(&session, options->words[0], &err);
    bool ok = redis != NULL && tl_ctl_session_keys(&session, options->words[0], &keys, &err) &&
              set_all(redis, &keys, options, &err);
    for (int i = 1; ok && i < options->n_words; i++) {
        printf("%s: %s\n", options->words[0], options->words[i]);
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
              tl_queue_notice(redis, &keys, options->words[1], &err);
    tl_ctl_session_close(&session);
    if (!ok)
        return tl_ctl_fail(tl_ctl_status_of(&err), &err);
    printf("%s: %s\n", options->words[0],
           options->words[1][0] != '\0' ? "notice set" : "notice removed");
    return TL_EXIT_OK;
}
