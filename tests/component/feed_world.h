/* SPDX-License-Identifier: Apache-2.0 */
/* The follower's thread beside the loop of a test, which notes what it is told. */
#ifndef TL_TEST_FEED_WORLD_H
#define TL_TEST_FEED_WORLD_H

#include "common/config/config.h"
#include "redis_server.h"
#include "worker/feed/follower.h"

struct feed_world {
    struct test_redis *server;
    struct tl_redis *redis;
    struct tl_keys keys;
    uv_loop_t loop;
    struct tl_follower *follower;
    char told[16384]; /* one word for each change but of the clock and of a recovery, in order */
    uint64_t capacity;
    int64_t offset_ms;
    enum tl_memory_level memory;
    bool clock_known;
    struct tl_recovery recovery;
    struct tl_turns_state turns;
};

/* Starts a store with queue "q" and a follower with this configuration, and waits until it is
 * connected. restricted: its user of the store may do what a worker's own user may. */
int feed_world_start(void **state, const struct tl_config *config, bool restricted);
/* With an empty configuration. */
int feed_world_start_plain(void **state);
int feed_world_stop(void **state);

/* Turns the loop until `expected` has been told. / Forgets what was told. */
void feed_world_until(struct feed_world *f, const char *expected);
void feed_world_forget(struct feed_world *f);

#endif
