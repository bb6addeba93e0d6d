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
#include "common/line/line.h"
#include "common/store/blocks.h"
#include "common/store/memory.h"
#include "common/store/redis.h"
#include "common/store/state.h"

struct tl_follower;

struct tl_follower_settings {
    struct tl_redis_settings redis;
    const char *key_prefix; /* must outlive the follower */
    bool compares;          /* tl_followed_queues_new */
    void *context;
    /* Called on the loop's thread, in the order in which things happened. */
    /* A new queue, or a new line of a known one. The line is the callee's. */
    void (*line)(void *context, const char *queue, const struct tl_queue_settings *settings,
                 struct tl_line *line);
    void (*entry)(void *context, const char *queue, const void *payload, size_t length);
    void (*settings)(void *context, const char *queue, const struct tl_queue_settings *settings);
    /* length 0: there is no notice. */
    void (*notice)(void *context, const char *queue, const char *text, size_t length);
    /* The queue cannot be followed, and why; length 0: it is followed again. */
    void (*trouble)(void *context, const char *queue, const char *text, size_t length);
    /* Before the first line, with each new line, and whenever it changes. */
    void (*recovery)(void *context, const char *queue, const struct tl_recovery *recovery);
    /* The turns of the lanes, after the settings may have changed. */
    void (*turns)(void *context, const char *queue, const struct tl_turns_state *turns);
    void (*gone)(void *context, const char *queue);
    void (*listed)(void *context);                   /* every queue has been posted */
    void (*clock)(void *context, int64_t offset_ms); /* store's Unix ms minus tl_clock_ms */
    void (*store)(void *context, bool up);
    /* The blocked prefixes have changed. The table is the callee's. */
    void (*blocks)(void *context, struct tl_blocks *blocks);
    /* How full the store's memory is; about once a second. */
    void (*memory)(void *context, const struct tl_store_memory *memory, enum tl_memory_level level);
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
