/* SPDX-License-Identifier: Apache-2.0 */
/* What all queues of a worker process share: its id, its metrics, the state of the store, and the
 * threads to and from it. The process owns it and keeps it up to date; the queues only read it. */
#ifndef TL_QUEUE_ENV_H
#define TL_QUEUE_ENV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/clock.h"
#include "common/base/error.h"
#include "common/base/metrics.h"
#include "common/config/config.h"
#include "worker/feed/outbox.h"

struct tl_follower;
struct tl_ingest;
struct tl_queue_counts;
struct tl_verifier;
struct tl_worker;

struct tl_queue_env {
    const char *worker_id; /* this process among all workers, as the function apply knows it */
    struct tl_metrics *metrics;
    struct tl_queue_counts *queue_counts; /* of all processes; NULL: nothing is counted */
    /* The names of the queues that the file lets everyone into past the line (`mode: passthrough`),
     * for the day on which the waiting room itself must get out of the way. */
    char (*passthrough)[TL_QUEUE_NAME_MAX + 1];
    size_t n_passthrough;

    bool ingest_up, follower_up; /* is the store connected? */
    enum tl_error_kind refuses;  /* TL_ERR_MISCONF, TL_ERR_OOM: the store takes no batch; TL_OK */
    bool listed;                 /* every queue is known here, also of the file */
    bool draining;
    bool memory_full;        /* the store's memory is nearly full: no joins */
    unsigned memory_percent; /* of the store's memory that is used; 0 without a limit */
    uint64_t in_flight;      /* commands in progress, as of the last turn */
    bool full;               /* too many commands are in progress, as of the last turn */
    int64_t heard_ms;        /* when the store was last heard of, local monotonic; 0: never */
    int64_t store_offset_ms; /* the store's Unix time minus local monotonic time */
    uint64_t changes;        /* counts those of the clock and of passthrough (struct tl_weather) */

    /* The threads beside the loop; no verifier without a challenge service. */
    struct tl_ingest *ingest;
    struct tl_follower *follower;
    struct tl_verifier *verifier;

    /* Who is told of the outcome of each pending command: `settle` for its queue, once for each,
     * begins with tl_queue_settled. */
    struct tl_worker *worker;
    tl_outbox_settle *settle;
};

/* Reads those names from this configuration: at the start and at every SIGHUP, because the store
 * may be what is away. Logs each. False without memory: then all is as before. */
bool tl_queue_env_read(struct tl_queue_env *env, const struct tl_config *config,
                       struct tl_error *err);
/* Does the file let everyone into this queue? */
bool tl_queue_env_lets_in(const struct tl_queue_env *env, const char *queue);

static inline bool tl_queue_env_store_up(const struct tl_queue_env *env)
{
    return env->ingest_up && env->follower_up;
}

/* Does the store take notes that are not of the line? At its memory limit it keeps its room. */
static inline bool tl_queue_env_takes_notes(const struct tl_queue_env *env)
{
    return tl_queue_env_store_up(env) && env->refuses == TL_OK && !env->memory_full;
}

/* Unix time in ms by the store's clock, for local monotonic time now_ms. */
static inline int64_t tl_queue_env_store_ms(const struct tl_queue_env *env, int64_t now_ms)
{
    return now_ms + env->store_offset_ms;
}

/* The same of now, for tl_outbox_clock. */
static inline uint64_t tl_queue_env_clock(const void *env)
{
    return (uint64_t)tl_queue_env_store_ms(env, tl_clock_ms());
}

/* ---- how joins share a worker when more come than the store takes ---- */

/* What waits, and the bounds at which all joins are refused. */
struct tl_press {
    uint64_t pending, pending_max; /* commands */
    int64_t lag_ms, lag_max_ms;    /* for how long they have waited in the store */
    unsigned memory_percent;       /* of the store */
};

/*
 * How many joins a second one address may have now; 0: nothing presses, as many as it wants.
 * The share falls with the room that is left, long before the bounds: what comes in is then what
 * the store takes, in equal shares of those who want more, and who wants less notices nothing.
 */
uint64_t tl_press_share(const struct tl_press *press);

#endif
