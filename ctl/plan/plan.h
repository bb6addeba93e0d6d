/* SPDX-License-Identifier: Apache-2.0 */
/* The crowd that `tellerline plan --simulate` replays, for other commands that use the same one. */
#ifndef TL_CTL_PLAN_PLAN_H
#define TL_CTL_PLAN_PLAN_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/error.h"
#include "common/config/settings.h"

#include "lab/arrivals.h"
#include "lab/plan_options.h"
#include "lab/simulate.h"

/* The settings of a queue as the simulation takes them, opened at once. */
void tl_plan_settings_of(const struct tl_queue_settings *queue,
                         struct tl_simulation_settings *settings);

/* Who comes, in a sentence for a report. arrivals is not empty. */
void tl_plan_describe(const struct tl_plan_options *options, const struct tl_arrivals *arrivals,
                      char *text, size_t size);

/* Reads or draws the arrivals, which the caller frees. Those without a session need --session. */
bool tl_plan_gather(const struct tl_plan_options *options, struct tl_arrivals *arrivals,
                    struct tl_error *err);

#endif
