/*
 * Which queues this process looks after: every replica of a role goes through all queues twice a
 * second, renews the leases it holds and takes those that are free. A lease that is not renewed
 * (its holder died) runs out within TL_LEASE_MS (common/store/lease.h), and others look at it when
 * it has, so another replica takes over in less than two seconds. One that was given back is found
 * in the next round. Leases spread the work; they are not what keeps it right.
 */
#ifndef TL_ROSTER_H
#define TL_ROSTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/config/config.h"
#include "common/store/keys.h"
#include "common/store/store.h"

struct tl_roster;

/* One queue this process holds the lease of. */
struct tl_post {
    struct tl_keys keys;
    uint64_t fence; /* of the lease; 0 for roles without one */
    void *work;     /* the role's own state for it; made by gain, freed by lose */
};

struct tl_roster_settings {
    const char *role;  /* names the lease: tl:{q}:<role> */
    const char *owner; /* this process among all; borrowed */
    bool fenced;       /* count up state.fence whenever the lease changes hands */
    void *context;     /* for the callbacks */
    /* A lease was taken, or (fenced) taken anew with another fence after it had run out: then lose
     * came before. Makes post->work. False with err: the lease is given back and tried again at the
     * next round. */
    bool (*gain)(void *context, struct tl_post *post, struct tl_error *err);
    /* It is gone (given back, lost to somebody else, or the queue was deleted): frees post->work.
     */
    void (*lose)(void *context, struct tl_post *post);
};

struct tl_roster *tl_roster_new(const struct tl_roster_settings *settings,
                                const struct tl_config *config, struct tl_error *err);
/* Loses all posts (without talking to the store) and frees. */
void tl_roster_free(struct tl_roster **roster);

/* Does a round when one is due, and at once after the connection was made anew: creates configured
 * queues that are missing, lists all queues, takes and renews leases. now_ms: local monotonic time,
 * at most a turn of the loop old. */
bool tl_roster_round(struct tl_roster *roster, struct tl_store *store, int64_t now_ms,
                     struct tl_error *err);
/* When the next round is due, local monotonic ms. */
int64_t tl_roster_due(const struct tl_roster *roster);
/* Asks for a round at the next turn, and for a look whether all configured queues are whole (the
 * store said STALE or NOGROUP, say). */
void tl_roster_hurry(struct tl_roster *roster);

/* The posts held, valid until the next round. */
size_t tl_roster_count(const struct tl_roster *roster);
struct tl_post *tl_roster_at(struct tl_roster *roster, size_t i);

/* Gives all leases back, so that others need not wait for them to run out. Best effort. */
void tl_roster_resign(struct tl_roster *roster, struct tl_store *store);

#endif
