/* Inside of the follower: what follower.c (the thread) and sources.c (the queues it knows) share.
 */
#ifndef TL_SOURCES_H
#define TL_SOURCES_H

#include <pthread.h>

#include "common/base/backoff.h"
#include "common/base/log.h"
#include "common/store/keys.h"
#include "common/store/store.h"
#include "common/store/tail.h"
#include "worker/feed/follower.h"
#include "worker/feed/mailbox.h"

/* A queue as the thread knows it. */
struct tl_source {
    struct tl_keys keys;
    struct tl_queue_settings settings;
    uint64_t generation;
    bool posted;  /* the loop has a line of it */
    bool listed;  /* found in the round under way */
    bool rebuild; /* asked for by the loop; guarded by the mutex */
    bool reload;
};

struct tl_follower {
    struct tl_follower_settings settings;
    pthread_t thread;
    /* Guards stopping, rebuild, reload, and the list of sources while it changes. */
    pthread_mutex_t mutex;
    pthread_cond_t wake;
    bool stopping;
    struct tl_mailbox *box;
    struct tl_queue_config *configured;
    size_t n_configured;
    /* The thread's own: */
    struct tl_store *store;
    struct tl_tail *tail;
    struct tl_source **sources;
    size_t n;
    size_t turn; /* the queue that is looked at first in the next round */
    uint64_t epoch;
    bool ensure;      /* the next round creates configured queues that are missing */
    int64_t round_ms; /* when the next round is due */
    bool quiet;       /* the last read brought nothing */
    bool up, told;
    struct tl_backoff backoff;
    struct tl_log_limit limit;
};

/* Posts a number: CLOCK, STORE, LISTED. */
bool tl_follower_post_number(struct tl_follower *follower, enum tl_message_kind kind,
                             int64_t number, struct tl_error *err);

/* Finds which queues there are now: new ones are added, the loop is told of those that are
 * gone, and `ensure` is set when one that is configured is missing. */
bool tl_sources_list(struct tl_follower *follower, struct tl_redis *redis, struct tl_error *err);
/* Once a second: loads new queues, and looks at some of the others in turn: was one made anew, were
 * its settings changed by hand? */
bool tl_sources_check(struct tl_follower *follower, struct tl_redis *redis, struct tl_error *err);
/* What the loop asked for since the last turn: lines to build anew, settings to read again. */
bool tl_sources_serve(struct tl_follower *follower, struct tl_redis *redis, struct tl_error *err);
/* The queue of that name, or NULL; other threads than the follower's hold the mutex. */
struct tl_source *tl_sources_find(const struct tl_follower *follower, const char *queue);

#endif
