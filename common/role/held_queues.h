/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The queues a role works on: those whose lease this process holds. This module does what every
 * role with leases needs: the connection, the leases, the state of each held queue, the events it
 * follows, and errors that concern one queue only. A role says in its settings what it does with a
 * queue.
 *
 * A turn of such a role: tl_held_queues_refresh, its own work (or tl_held_queues_serve), then
 * tl_held_queues_read_events to wait. After any failure: tl_held_queues_recheck.
 */
#ifndef TL_HELD_QUEUES_H
#define TL_HELD_QUEUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/metrics.h"
#include "common/config/config.h"
#include "common/role/daemon.h"
#include "common/role/roster.h"
#include "common/store/redis.h"
#include "common/store/tail.h"

struct tl_held_queues;

/* What a role does with its queues. All callbacks get `context`; any of them may be NULL. */
struct tl_held_queues_settings {
    const char *role;  /* names the leases */
    bool fenced;       /* count a fence whenever a lease changes hands */
    size_t state_size; /* of held->state, which starts zeroed */
    size_t gauge;      /* the metric that counts held queues */
    size_t troubled;   /* the metric that counts queues set aside */
    size_t listed;     /* the metric that counts all queues there are */
    size_t latency;    /* the metric of one command's time */
    void *context;
    /* A lease was taken: completes held->state. False with err: the lease is released, and the next
     * round tries again; `lost` is not called for it. */
    bool (*acquired)(void *context, struct tl_held_queue *held, struct tl_error *err);
    /* The lease is gone: frees what held->state owns. */
    void (*lost)(void *context, struct tl_held_queue *held);
    /* A turn or `serve` failed, or the connection is a new one: held->state may be out of date. */
    void (*outdated)(void *context, struct tl_held_queue *held);
    /* Does what is due for this queue, and lowers *due_ms to the time by which the next turn has to
     * come for it (local monotonic). */
    bool (*serve)(void *context, struct tl_held_queue *held, int64_t now_ms, int64_t *due_ms,
                  struct tl_error *err);
    /* The queue is set aside: does what can be done for it nevertheless. What fails stays undone.
     */
    void (*serve_resting)(void *context, struct tl_held_queue *held, int64_t now_ms,
                          int64_t *due_ms);
    /* An entry of the queue's events, once the queue is followed; see tl_tail_handler. */
    bool (*on_entry)(void *context, struct tl_held_queue *held, const void *payload, size_t length);
};

/* Opens nothing yet. config, owner (the id of this process), metrics and all that settings point to
 * are borrowed. NULL on failure. */
struct tl_held_queues *tl_held_queues_new(const struct tl_held_queues_settings *settings,
                                          const struct tl_config *config, const char *owner,
                                          struct tl_metrics *metrics, struct tl_error *err);
/* Releases the leases, so that another replica need not wait until they run out, and frees all. */
void tl_held_queues_free(struct tl_held_queues **queues);

/* The first step of a turn: connects, and takes and renews leases when that is due. */
bool tl_held_queues_refresh(struct tl_held_queues *queues, int64_t now_ms, struct tl_error *err);

/* Calls `serve` for every held queue that is not set aside, else `serve_resting`. An error of one
 * queue alone (a function failed on its data) sets the queue aside and does not stop the others. */
bool tl_held_queues_serve(struct tl_held_queues *queues, int64_t now_ms, int64_t *due_ms,
                          struct tl_error *err);

/* For a role that does not use tl_held_queues_serve. Must the queue be left alone? */
bool tl_held_queues_resting(const struct tl_held_queues *queues, const struct tl_held_queue *held,
                            int64_t now_ms);
/* Sets the queue aside when the error concerns its data alone; else returns false. */
bool tl_held_queues_set_aside(struct tl_held_queues *queues, struct tl_held_queue *held,
                              struct tl_error *err, int64_t now_ms);
/* The queue was served. */
void tl_held_queues_served(struct tl_held_queues *queues, const struct tl_held_queue *held,
                           int64_t now_ms);
/* Tells the daemon which queues are set aside, and why. The role cannot do its work when that is
 * all queues there are. */
void tl_held_queues_report(const struct tl_held_queues *queues, struct tl_daemon *daemon);

/* After a failed turn: calls `outdated` for every held queue and checks all leases next turn. */
void tl_held_queues_recheck(struct tl_held_queues *queues);

/* How long a turn may wait, in ms: until due_ms or the next round of leases, at most half a second;
 * 0 when one of them has passed. */
int64_t tl_held_queues_wait_ms(const struct tl_held_queues *queues, int64_t due_ms, int64_t now_ms);

/* Follows the queue's events from the entry after head, until its lease is lost. */
bool tl_held_queues_follow(struct tl_held_queues *queues, const struct tl_held_queue *held,
                           const struct tl_tail_head *head, struct tl_error *err);
/* Are the queue's events followed? Not before tl_held_queues_follow, and no longer after on_entry
 * returned false or the stream could not be read. */
bool tl_held_queues_follows(const struct tl_held_queues *queues, const struct tl_held_queue *held);
/* How many queues are followed. */
size_t tl_held_queues_followed(const struct tl_held_queues *queues);
/* Waits up to block_ms for events and passes them to on_entry. Returns at once when no queue is
 * followed. */
bool tl_held_queues_read_events(struct tl_held_queues *queues, int64_t block_ms,
                                struct tl_error *err);

/* The held queues by name, valid until the next refresh. */
size_t tl_held_queues_count(const struct tl_held_queues *queues);
struct tl_held_queue *tl_held_queues_at(const struct tl_held_queues *queues, size_t i);

/* The connection of a queue; NULL: the one for what belongs to no queue. */
struct tl_redis *tl_held_queues_redis(const struct tl_held_queues *queues, const char *queue);

#endif
