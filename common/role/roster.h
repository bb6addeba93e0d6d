/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The leases of one role in this process. Twice a second every replica of a role goes through all
 * queues, renews the leases it holds and takes free ones. One that is not renewed, because its
 * holder died, runs out within TL_LEASE_MS, or later if its holder's turns were slow; the others
 * check it at that time. Leases spread the work; correctness does not depend on them.
 */
#ifndef TL_ROSTER_H
#define TL_ROSTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/config/config.h"
#include "common/store/keys.h"
#include "common/store/store.h"
#include "common/store/troubles.h"

struct tl_queue_series;
struct tl_roster;

/* A queue whose lease this process holds. */
struct tl_held_queue {
    struct tl_keys keys;
    struct tl_redis *redis; /* the connection of the queue; borrowed */
    uint64_t epoch;         /* of its store (tl_store_epoch_of), when it was looked up */
    uint64_t fence;         /* of the lease; 0 for roles without one */
    /* The role's; made by take, freed by drop: */
    void *state;
    struct tl_queue_series *series;
};

struct tl_roster_settings {
    const char *role;             /* names the lease: tl:{q}:<role> */
    const char *owner;            /* the id of this process; borrowed */
    bool fenced;                  /* count up state.fence whenever the lease changes hands */
    struct tl_store *store;       /* borrowed */
    struct tl_troubles *troubles; /* queues set aside; their free leases are left alone */
    void *context;                /* for the callbacks */
    /* A lease was taken. When a fenced lease ran out and was taken again with another fence, `drop`
     * was called before. False with err: the lease is released, and a later round tries again. */
    bool (*take)(void *context, struct tl_held_queue *held, struct tl_error *err);
    /* The lease is gone: released, taken by another replica, or the queue was deleted. */
    void (*drop)(void *context, struct tl_held_queue *held);
};

struct tl_roster *tl_roster_new(const struct tl_roster_settings *settings,
                                const struct tl_config *config, struct tl_error *err);
/* Calls `drop` for all held queues and frees. Does not use the store. */
void tl_roster_free(struct tl_roster **roster);

/* Does a round when one is due, and at once on a new connection: creates configured queues that are
 * missing, lists all queues, takes and renews leases. now_ms: local monotonic time, at most one
 * turn of the loop old. A queue that cannot be served is set aside and does not stop the others. */
bool tl_roster_round(struct tl_roster *roster, int64_t now_ms, struct tl_error *err);
/* Sets aside a queue whose data caused this error (common/store/troubles.h). False when the error
 * concerns all queues. */
bool tl_roster_set_aside(struct tl_roster *roster, const char *queue, int64_t now_ms,
                         struct tl_error *err);
/* When the next round is due, local monotonic ms. */
int64_t tl_roster_due(const struct tl_roster *roster);
/* Makes the next call do a full round, which also restores what is missing of configured queues.
 * For errors such as STALE and NOGROUP. */
void tl_roster_recheck_now(struct tl_roster *roster);

/* How many queues there are, held or not. */
size_t tl_roster_listed(const struct tl_roster *roster);
/* The held queues by name, valid until the next round. */
size_t tl_roster_count(const struct tl_roster *roster);
struct tl_held_queue *tl_roster_at(struct tl_roster *roster, size_t i);
/* NULL: it is not held. */
struct tl_held_queue *tl_roster_find(const struct tl_roster *roster, const char *queue);

/* Looks up the connection of the queue. Is it another one than before, or was it opened again? */
bool tl_roster_reconnect(struct tl_roster *roster, struct tl_held_queue *held);

/* Releases all leases, so that other replicas need not wait until they run out. Ignores errors. */
void tl_roster_release_all(struct tl_roster *roster);

#endif
