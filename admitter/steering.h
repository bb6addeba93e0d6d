/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Steers the capacity of queues with a `capacity.min` (docs/operators/adaptive.md): asks sites
 * how loaded they are, without waiting for any, so that one that hangs delays no one, and once a
 * second calls the function adapt.lua, which decides by what the site reports. The log and the
 * metrics are told of both.
 */
#ifndef TL_STEERING_H
#define TL_STEERING_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/metrics.h"
#include "common/config/config.h"
#include "common/role/roster.h"

/* The metrics of the admitter; those from STEERED on are of steered queues. */
enum tl_admitter_metric {
    TL_ADMITTER_ADMITTED,
    TL_ADMITTER_STEPS,
    TL_ADMITTER_IDLE_STEPS,
    TL_ADMITTER_STEP_TIME,
    TL_ADMITTER_STEERED,
    TL_ADMITTER_UNREPORTED,
    TL_ADMITTER_CAPACITY,
    TL_ADMITTER_RAISES,
    TL_ADMITTER_CUTS,
    TL_ADMITTER_PROBES,
    TL_ADMITTER_PROBE_ERRORS,
    TL_ADMITTER_METRICS
};

struct tl_steering;

/* What is known of one held queue; starts zeroed. */
struct tl_steered {
    bool on;          /* its capacity is steered: the caller says so */
    int64_t due_ms;   /* of the next step; local monotonic */
    int64_t probe_ms; /* when to come again for the probe of the site, likewise */
    bool known;       /* what follows, by the last step */
    bool unreported;
    bool lowest;
    int64_t capacity;
    int64_t load; /* reported last, in tenths of a per cent; -1: none */
};

/* The configuration is borrowed, and the metrics. NULL on failure. */
struct tl_steering *tl_steering_new(const struct tl_config *config, struct tl_metrics *metrics,
                                    struct tl_error *err);
void tl_steering_free(struct tl_steering **steering);

/* Goes on with the probe of the site, and takes one step, if it is due. */
bool tl_steering_step(struct tl_steering *steering, const struct tl_held_queue *held,
                      struct tl_steered *steered, int64_t now_ms, struct tl_error *err);

#endif
