/* SPDX-License-Identifier: Apache-2.0 */
/* `plan` and `rehearse`: what the lab computes and sends, on the configuration and the store. */
#ifndef TL_CTL_PLAN_H
#define TL_CTL_PLAN_H

#include "common/config/settings.h"

#include "lab/simulate.h"

#include "ctl/shell/shell.h"

/* ---- the crowd that `plan --simulate` replays, for `rehearse`, too ---- */

struct tl_plan_crowd {
    struct tl_arrivals arrivals; /* at least one; freed by the caller */
    struct tl_simulation_visitors visitors;
    char words[400]; /* who comes, in a sentence */
};

/* Reads or draws the crowd of a queue. Arrivals without a session need --session. */
bool tl_plan_gather(const struct tl_plan_options *options, const struct tl_queue_settings *queue,
                    struct tl_plan_crowd *crowd, struct tl_error *err);

/* ---- the scratch queue of a rehearsal ---- */

/* A queue of its own with the settings of another one, which leaves nothing behind.
 *
 * With a speed of N, each duration of the settings is an Nth, so that N seconds of the sale pass in
 * one. Moments keep their distance from the opening, divided in the same way. */

/* A new name for a rehearsal of this queue: rehearsal-QUEUE-RANDOM, cut to the length of a name. */
void tl_scratch_name(const char *queue, char name[TL_QUEUE_NAME_MAX + 1]);

/* The settings of the queue in the store, or of the configuration when the store has none.
 * TL_ERR_NOQUEUE when it is in neither. *stored tells which. */
bool tl_scratch_source(struct tl_ctl_session *session, const char *queue,
                       struct tl_queue_settings *settings, bool *stored, struct tl_error *err);

/* The highest speed at which all times stay long enough to be kept over HTTP; at least 1. */
uint64_t tl_scratch_speed_most(const struct tl_queue_settings *settings);
/* Scales the settings for a speed up to that. The queue opens at opens_ms (Unix time; 0: at once)
 * and is not paused. now_ms: Unix time, from which the other moments count when the settings have
 * no opening; those that have passed are removed. */
void tl_scratch_settings(struct tl_queue_settings *settings, uint64_t speed, int64_t now_ms,
                         int64_t opens_ms);

/* Deletes the queue as an operator does, again until the programs have let go of it: about three
 * seconds. */
bool tl_scratch_remove(struct tl_ctl_session *session, const char *name, struct tl_error *err);

/* ---- the verbs ---- */

tl_ctl_verb tl_command_plan;
tl_ctl_verb tl_command_rehearse;

#endif
