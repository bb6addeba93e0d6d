#include <inttypes.h>
#include <stdio.h>

#include "common/store/recovery.h"

#include "ctl/command.h"
#include "ctl/session.h"

static void report(const char *queue, const struct tl_ctl_options *options,
                   const struct tl_recovery *recovery)
{
    if (options->now && recovery->until_ms == 0)
        printf("%s: no recovery is under way; none begins by itself any more\n", queue);
    else if (options->now)
        printf("%s: the recovery ends; %" PRIu64 " places came back\n", queue, recovery->restored);
    else
        printf("%s: no one is admitted for %" PRId64 " s; %" PRIu64 " places came back so far\n",
               queue, options->wait_ms / 1000, recovery->restored);
}

int tl_command_recover(const struct tl_ctl_options *options)
{
    struct tl_error err = {0};
    struct tl_ctl_session session;
    struct tl_keys keys;
    struct tl_recovery recovery;
    const char *queue = options->words[0];
    if (options->now == (options->wait_ms > 0)) {
        tl_error_set(&err, TL_ERR_INVALID, "recover takes one of --now and --wait TIME");
        return tl_ctl_fail(TL_EXIT_FAILED, &err);
    }
    if (!tl_ctl_session_open(&session, options, &err))
        return tl_ctl_fail(TL_EXIT_FAILED, &err);
    struct tl_redis *redis = tl_ctl_session_redis(&session, queue, &err);
    bool ok = redis != NULL && tl_ctl_session_keys(&session, queue, &keys, &err) &&
              tl_recovery_read(redis, &keys, &recovery, &err) &&
              tl_recovery_end_in(redis, &keys, options->wait_ms, &session.actor, &err);
    tl_ctl_session_close(&session);
    if (!ok)
        return tl_ctl_fail(tl_ctl_status_of(&err), &err);
    report(queue, options, &recovery);
    return TL_EXIT_OK;
}
