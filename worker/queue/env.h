/* What all queues of a worker process share: its id, its metrics, the state of the store, and the
 * callbacks of a queue. The process owns it and keeps it up to date; the queues only read it. */
#ifndef TL_QUEUE_ENV_H
#define TL_QUEUE_ENV_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/metrics.h"
#include "worker/feed/outbox.h"

struct tl_local_queue;

struct tl_queue_env {
    const char *worker_id; /* this process among all workers, as the apply script knows it */
    struct tl_metrics *metrics;

    bool ingest_up, follower_up; /* is the store connected? */
    bool listed;                 /* every queue of the store is known here */
    bool draining;
    int64_t store_offset_ms; /* the store's Unix time minus local monotonic time */

    void *context; /* for the callbacks */
    /* May another command be sent now? (The store is up, and not too many are in progress.) */
    bool (*can_send)(void *context);
    /* Asks for a fresh snapshot of this queue, or for its settings. */
    void (*rebuild)(void *context, const char *queue);
    void (*reload)(void *context, const char *queue);
    /* The outcome of a pending command, once for each. */
    void (*settled)(void *context, struct tl_local_queue *queue, struct tl_pending_command *pending,
                    const struct tl_pending_result *result);
    /* The line has taken an entry of the events stream. */
    void (*changed)(void *context, struct tl_local_queue *queue, const struct tl_event_entry *entry,
                    int64_t now_ms);
};

static inline bool tl_queue_env_store_up(const struct tl_queue_env *env)
{
    return env->ingest_up && env->follower_up;
}

/* Unix time in ms by the store's clock, for local monotonic time now_ms. */
static inline int64_t tl_queue_env_store_ms(const struct tl_queue_env *env, int64_t now_ms)
{
    return now_ms + env->store_offset_ms;
}

#endif
