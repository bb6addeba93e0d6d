/* SPDX-License-Identifier: Apache-2.0 */
/* The visitors of a rehearsal: they join, wait, come when called, stay and complete, over HTTP. */
#ifndef TL_LAB_VISITORS_H
#define TL_LAB_VISITORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/config/settings.h"
#include "common/role/signals.h"

#include "lab/arrivals.h"
#include "lab/door.h"
#include "lab/figures.h"
#include "lab/simulate.h"

struct tl_crowd_progress;

struct tl_crowd_settings {
    const char *server, *queue;               /* where they go; the queue is there already */
    const struct tl_door *door;               /* how they join */
    const struct tl_plan_lanes *lanes;        /* of the queue */
    const struct tl_queue_settings *settings; /* of the queue */
    const struct tl_arrivals *arrivals;       /* of the sale, like the visitors */
    const struct tl_simulation_visitors *visitors;
    double leaving; /* share of those who give up and say so */
    uint64_t speed;
    size_t streams_most;
    int64_t opens_in_ms; /* the queue opens so long after the beginning; 0 or less: it is open */
    int64_t limit_ms;    /* of the whole */
    const struct tl_signals *signals; /* a stop ends it */
    /* Called about once a second. */
    void (*progress)(void *context, const struct tl_crowd_progress *progress);
    void *context;
};

struct tl_crowd_progress {
    int64_t now_ms; /* since the beginning */
    uint64_t arrived, waiting, present, gone;
};

/* Runs until all are gone, the operator stops it, or time is up. The rehearsal's visitors are
 * allocated here, and freed by the caller with free(), also on failure. */
bool tl_crowd_run(const struct tl_crowd_settings *settings, struct tl_rehearsal *rehearsal,
                  struct tl_error *err);

#endif
