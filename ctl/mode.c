#include <stdio.h>

#include "common/config/mode.h"
#include "common/store/queue.h"

#include "ctl/command.h"
#include "ctl/session.h"

/* What has changed for visitors. */
static const char *const meanings[TL_MODES] = {
    [TL_MODE_OPEN] = "visitors join and are admitted",
    [TL_MODE_PAUSED] = "visitors join, no one is admitted",
    [TL_MODE_DRAINING] = "no one joins, the line is served",
    [TL_MODE_CLOSED] = "no one joins, no one is admitted",
    [TL_MODE_SOLD_OUT] = "no one joins, no one is admitted",
    [TL_MODE_PASSTHROUGH] = "everyone gets in past the line",
};

static int change(const struct tl_ctl_options *options, enum tl_queue_mode mode)
{
    struct tl_error err = {0};
    struct tl_ctl_session session;
    struct tl_keys keys;
    const char *queue = options->words[0];
    if (!tl_ctl_session_open(&session, options, &err))
        return tl_ctl_fail(TL_EXIT_FAILED, &err);
    struct tl_redis *redis = tl_ctl_session_redis(&session, queue, &err);
    bool ok = redis != NULL && tl_ctl_session_keys(&session, queue, &keys, &err) &&
              tl_queue_configure(redis, &keys, "mode", tl_mode_name(mode), &session.actor, &err);
    tl_ctl_session_close(&session);
    if (!ok)
        return tl_ctl_fail(tl_ctl_status_of(&err), &err);
    printf("%s: %s: %s\n", queue, tl_mode_name(mode), meanings[mode]);
    return TL_EXIT_OK;
}

int tl_command_open(const struct tl_ctl_options *options)
{
    return change(options, TL_MODE_OPEN);
}

int tl_command_pause(const struct tl_ctl_options *options)
{
    return change(options, TL_MODE_PAUSED);
}

int tl_command_drain(const struct tl_ctl_options *options)
{
    return change(options, TL_MODE_DRAINING);
}

int tl_command_close(const struct tl_ctl_options *options)
{
    return change(options, TL_MODE_CLOSED);
}

int tl_command_sold_out(const struct tl_ctl_options *options)
{
    return change(options, TL_MODE_SOLD_OUT);
}

int tl_command_passthrough(const struct tl_ctl_options *options)
{
    return change(options, TL_MODE_PASSTHROUGH);
}
