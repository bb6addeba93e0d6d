/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread that follows the events streams: finds the queues in the store, builds their lines
 * from snapshots, and posts both and every event to the loop, in order. Once a second it looks for
 * queues that were created, deleted or replaced, for settings changed by hand, and for the time by
 * the store's clock.
 */
#ifndef TL_FOLLOWER_H
#define TL_FOLLOWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <uv.h>

#include "common/base/error.h"
#include "common/config/config.h"
#include "common/store/redis.h"
#include "worker/feed/change.h"

struct tl_follower;

struct tl_follower_settings {
    struct tl_redis_settings redis;
    const char *key_prefix; /* must outlive the follower */
    bool compares;          /* tl_followed_queues_new */
    void *context;
    /* Called on the loop's thread, in the order in which things happened; the change is freed
     * afterwards. */
    void (*changed)(void *context, struct tl_change *change);
};

/* config names the queues to create; it is borrowed. NULL on failure, with err set. */
struct tl_follower *tl_follower_new(uv_loop_t *loop, const struct tl_follower_settings *settings,
                                    const struct tl_config *config, struct tl_error *err);
/* Builds the queue's line from a fresh snapshot, after a gap. May be asked more than once. */
void tl_follower_rebuild(struct tl_follower *follower, const char *queue);
/* Reads the queue's settings, which may have changed. */
void tl_follower_reload(struct tl_follower *follower, const char *queue);
/* Stops the thread and frees. The loop must run one more turn to close the handle. */
void tl_follower_free(struct tl_follower **follower);

#endif
