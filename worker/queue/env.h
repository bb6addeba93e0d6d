/* SPDX-License-Identifier: Apache-2.0 */
/* What all queues of a worker process share: its id, its metrics, the state of the store, and the
 * threads to and from it. The process owns it and keeps it up to date; the queues only read it. */
#ifndef TL_QUEUE_ENV_H
#define TL_QUEUE_ENV_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/clock.h"
#include "common/base/error.h"
#include "common/base/metrics.h"
#include "worker/feed/outbox.h"

struct tl_follower;
struct tl_ingest;
struct tl_passthrough;
struct tl_queue_counts;
struct tl_verifier;
struct tl_worker;

struct tl_queue_env {
    const char *worker_id; /* this process among all workers, as the function apply knows it */
    struct tl_metrics *metrics;
    struct tl_queue_counts *queue_counts; /* of all processes; NULL: nothing is counted */
    struct tl_passthrough *passthrough;   /* whom the file lets in; the api's; NULL: no one */

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

    /* The threads beside the loop; no verifier without a challenge service. */
    struct tl_ingest *ingest;
    struct tl_follower *follower;
    struct tl_verifier *verifier;

    /* Who is told of the outcome of each pending command: `settle` for its queue, once for each,
     * begins with tl_queue_settled. */
    struct tl_worker *worker;
    tl_outbox_settle *settle;
};

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

/* What is older than this is shown with its age. */
enum { TL_QUEUE_STALE_MS = 5000 };

/* When the lines were last known to be up to date, as Unix time in ms by the store's clock; 0: they
 * are up to date. */
static inline int64_t tl_queue_env_as_of_ms(const struct tl_queue_env *env, int64_t now_ms)
{
    if (env->heard_ms == 0 || now_ms - env->heard_ms < TL_QUEUE_STALE_MS)
        return 0;
    return tl_queue_env_store_ms(env, env->heard_ms);
}

#endif
