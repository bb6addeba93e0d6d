/* SPDX-License-Identifier: Apache-2.0 */
/* The visitors of a rehearsal: they join, wait, come when called, stay and complete, over HTTP. */
#ifndef TL_LAB_VISITORS_H
#define TL_LAB_VISITORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/config/config.h"
#include "common/role/signals.h"

#include "lab/figures.h"

/* ---- the door: by an API key, by invites that the rehearsal signs itself, or as anybody does ----
 */

enum { TL_DOOR_BODY_MAX = 2200 };

struct tl_door;

/* Reads the files of secrets.api_keys and secrets.invite_keys that there are. The first API key is
 * used; without one the first HS256 key signs invites. NULL on failure. */
struct tl_door *tl_door_new(const struct tl_config *config, struct tl_error *err);
void tl_door_free(struct tl_door **door); /* wipes the keys; NULL allowed */

/* Does it open what is closed to anybody: limits, challenges, invitations, the choice of a lane? */
bool tl_door_trusted(const struct tl_door *door);

/* The store's clock, for how long an invite is good: `store_s` (Unix time) at now_ms (tl_clock_ms).
 * To be set before the first join. */
void tl_door_set_clock(struct tl_door *door, int64_t store_s, int64_t now_ms);

/* The body of a join, "" for none, and what goes to Authorization, borrowed, NULL for none. lane:
 * the name; without trust everybody joins the default lane. */
bool tl_door_join(const struct tl_door *door, const char *queue, size_t visitor, const char *lane,
                  int64_t now_ms, char body[TL_DOOR_BODY_MAX], const char **bearer,
                  struct tl_error *err);

/* ---- the crowd ---- */

struct tl_crowd_progress;

struct tl_crowd_settings {
    const char *target, *queue;               /* where they go; the queue is there already */
    const struct tl_door *door;               /* how they join */
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
