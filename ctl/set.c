#include <stdio.h>
#include <string.h>

#include "common/base/quote.h"
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

int tl_command_set(const struct tl_ctl_options *options)
{
    struct tl_error err = {0};
    struct tl_ctl_session session;
    struct tl_keys keys;
    if (!tl_ctl_session_open(&session, options, &err))
        return tl_ctl_fail(TL_EXIT_FAILED, &err);
    struct tl_redis *redis = tl_ctl_session_redis(&session, options->words[0], &err);
    bool ok = redis != NULL && tl_ctl_session_keys(&session, options->words[0], &keys, &err);
    for (int i = 1; ok && i < options->n_words; i++) {
        const char *assignment = options->words[i];
        const char *equals = strchr(assignment, '=');
        size_t length = equals != NULL ? (size_t)(equals - assignment) : 0;
        char name[64] = "";
        if (length > 0 && length < sizeof(name)) {
            memcpy(name, assignment, length);
            ok = tl_queue_configure(redis, &keys, name, equals + 1, &err);
        } else {
            char quoted[96];
            tl_quote(assignment, quoted, sizeof(quoted));
            ok = tl_error_set(&err, TL_ERR_INVALID, "%s: expected NAME=VALUE, as in capacity=20",
                              quoted);
        }
        if (ok)
            printf("%s: %s\n", options->words[0], assignment);
        if (ok && strcmp(assignment, "challenge=external") == 0)
            warn_without_service(session.config);
        else if (i > 1)
            tl_error_prefix(&err, "the settings before this one are in force");
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
