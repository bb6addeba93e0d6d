/* SPDX-License-Identifier: Apache-2.0 */
#include "common/config/mode.h"

#include "ctl/calls/call.h"
#include "ctl/calls/tell.h"

/* The call, and what it changes for visitors. */
static const struct {
    const char *call, *meaning;
} modes[TL_MODES] = {
    [TL_MODE_OPEN] = {"open", "visitors join and are admitted"},
    [TL_MODE_PAUSED] = {"pause", "visitors join, no one is admitted"},
    [TL_MODE_DRAINING] = {"drain", "no one joins, the line is served"},
    [TL_MODE_CLOSED] = {"close", "no one joins, no one is admitted"},
    [TL_MODE_SOLD_OUT] = {"sell-out", "no one joins, no one is admitted"},
    [TL_MODE_PASSTHROUGH] = {"passthrough", "everyone gets in past the line"},
};

static int change(const struct tl_ctl_options *options, enum tl_queue_mode mode)
{
    char target[TL_CTL_TARGET_MAX];
    const char *queue = options->words[0];
    json_t *answer;
    if (!tl_ctl_target(target, "queues", queue, modes[mode].call, NULL))
        return TL_EXIT_PROBLEM;
    const struct tl_ctl_ask ask = {.method = "POST", .target = target};
    int status = tl_ctl_call_once(options, &ask, &answer);
    return status == TL_EXIT_OK ? tl_ctl_tell(options, answer, "%s: %s: %s", queue,
                                              tl_mode_name(mode), modes[mode].meaning)
                                : status;
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
