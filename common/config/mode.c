/* SPDX-License-Identifier: Apache-2.0 */
#include "common/config/mode.h"

static const char *const mode_names[TL_MODES] = {
    [TL_MODE_OPEN] = "open",         [TL_MODE_PAUSED] = "paused",
    [TL_MODE_DRAINING] = "draining", [TL_MODE_CLOSED] = "closed",
    [TL_MODE_SOLD_OUT] = "sold_out", [TL_MODE_PASSTHROUGH] = "passthrough"};

static const char *const phase_names[TL_PHASES] = {
    [TL_PHASE_OPEN] = "open",       [TL_PHASE_SCHEDULED] = "scheduled",
    [TL_PHASE_DRAWING] = "drawing", [TL_PHASE_FULL] = "full",
    [TL_PHASE_OVER] = "over",       [TL_PHASE_RECOVERING] = "recovering"};

#define TO(mode) (1U << (mode))
#define TO_ANY   ((1U << TL_MODES) - 1)

/* Which modes may follow. What visitors were told as final, "sold out", takes two steps to undo:
 * one mistyped command must not call those who were told to go. */
static const unsigned followers[TL_MODES] = {
    [TL_MODE_OPEN] = TO_ANY,
    [TL_MODE_PAUSED] = TO_ANY,
    [TL_MODE_DRAINING] = TO_ANY,
    [TL_MODE_CLOSED] = TO_ANY,
    [TL_MODE_SOLD_OUT] = TO(TL_MODE_SOLD_OUT) | TO(TL_MODE_CLOSED) | TO(TL_MODE_PASSTHROUGH),
    [TL_MODE_PASSTHROUGH] = TO_ANY,
};

const char *tl_mode_name(enum tl_queue_mode mode)
{
    return mode_names[mode];
}

const char *tl_phase_name(enum tl_phase phase)
{
    return phase_names[phase];
}

static bool may_follow(enum tl_queue_mode from, enum tl_queue_mode to)
{
    return (followers[from] & TO(to)) != 0;
}

bool tl_mode_holds(enum tl_queue_mode mode)
{
    return mode != TL_MODE_OPEN && mode != TL_MODE_DRAINING;
}

bool tl_mode_change(const struct tl_queue_settings *before, const struct tl_queue_settings *after,
                    struct tl_error *err)
{
    return may_follow(before->mode, after->mode) ||
           tl_error_set(err, TL_ERR_INVALID,
                        "%s cannot follow %s, which visitors were told: close the queue first "
                        "(`tellerline queue close QUEUE`)",
                        mode_names[after->mode], mode_names[before->mode]);
}

static bool is_past_close(const struct tl_queue_settings *settings, int64_t now_ms)
{
    return settings->closes_at_ms != 0 && now_ms >= settings->closes_at_ms;
}

bool tl_mode_admits(const struct tl_queue_settings *settings, int64_t now_ms)
{
    bool stopped = settings->after_close == TL_AFTER_CLOSE_STOP && is_past_close(settings, now_ms);
    return !tl_mode_holds(settings->mode) && now_ms >= settings->opens_at_ms && !stopped;
}

/* common/store/line/settings.lua decides the same. */
static bool is_full(const struct tl_queue_settings *settings, const struct tl_phase_facts *facts)
{
    uint64_t max = settings->max_waiting;
    uint64_t margin = (max * settings->reopen.margin + 99) / 100;
    if (max == 0 || facts->waiting >= max)
        return max > 0;
    return facts->full_since_ms != 0 &&
           (facts->waiting + margin > max ||
            facts->now_ms < facts->full_since_ms + settings->reopen.after_ms);
}

enum tl_phase tl_phase_of(const struct tl_queue_settings *settings,
                          const struct tl_phase_facts *facts)
{
    if (facts->recovering)
        return TL_PHASE_RECOVERING;
    if (is_past_close(settings, facts->now_ms))
        return TL_PHASE_OVER;
    if (is_full(settings, facts))
        return TL_PHASE_FULL;
    if (facts->now_ms < settings->opens_at_ms)
        return TL_PHASE_SCHEDULED;
    return facts->drawing ? TL_PHASE_DRAWING : TL_PHASE_OPEN;
}

bool tl_phase_joins(const struct tl_queue_settings *settings, enum tl_phase phase)
{
    bool taken = settings->mode == TL_MODE_OPEN || settings->mode == TL_MODE_PAUSED;
    return taken && phase != TL_PHASE_FULL && phase != TL_PHASE_OVER;
}
