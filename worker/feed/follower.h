/*
 * The thread that follows the events streams: finds the queues there are, builds their lines from
 * snapshots, and posts both and every event to the loop, in order. Once a second it looks for
 * queues that came, went or were made anew, for settings changed by hand, and for the time by the
 * store's clock.
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
#include "common/store/redis.h"

struct tl_follower;

struct tl_follower_settings {
    struct tl_redis_settings redis;
    const char *key_prefix; /* borrowed for good */
    void *context;
    /* On the loop's thread, in the order in which things happened: */
    void (*line)(void *context, const char *queue, const struct tl_queue_settings *settings,
                 struct tl_line *
                     line); /* a new queue or a new line of a known one; the line is the callee's */
    void (*entry)(void *context, const char *queue, const void *payload, size_t length);
    void (*settings)(void *context, const char *queue, const struct tl_queue_settings *settings);
    void (*notice)(void *context, const char *queue, const char *text,
                   size_t length); /* "": none */
    void (*gone)(void *context, const char *queue);
    void (*listed)(void *context);                   /* every queue there is has been posted */
    void (*clock)(void *context, int64_t offset_ms); /* store's Unix ms minus local monotonic ms */
    void (*store)(void *context, bool up);
};

/* config gives the queues to create; it is copied. */
struct tl_follower *tl_follower_new(uv_loop_t *loop, const struct tl_follower_settings *settings,
                                    const struct tl_config *config, struct tl_error *err);
/* A gap was found: build this queue's line again. May be asked more than once. */
void tl_follower_rebuild(struct tl_follower *follower, const char *queue);
/* The settings may have changed: read them now. */
void tl_follower_reload(struct tl_follower *follower, const char *queue);
/* Stops the thread and frees; the loop must turn once more to close the handle. */
void tl_follower_free(struct tl_follower **follower);

#endif
