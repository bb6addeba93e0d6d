/*
 * The queues that the follower's thread knows: which there are, their settings and generations, and
 * how far their events have been read. Posts every change of them to a mailbox, in order. Belongs
 * to one thread.
 */
#ifndef TL_FOLLOWED_QUEUES_H
#define TL_FOLLOWED_QUEUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/config/config.h"
#include "common/store/redis.h"
#include "worker/feed/mailbox.h"

struct tl_followed_queues;

/* Borrows key_prefix and changes for its life. Copies the queues of config, to create those that
 * are missing. NULL when out of memory. */
struct tl_followed_queues *tl_followed_queues_new(const char *key_prefix,
                                                  const struct tl_config *config,
                                                  struct tl_mailbox *changes);
void tl_followed_queues_free(struct tl_followed_queues **queues);

/* The next update creates the configured queues that are missing: for a new connection. */
void tl_followed_queues_create_missing(struct tl_followed_queues *queues);
/* Once a second: finds queues that were created, deleted or replaced, and settings that were
 * changed by hand. With many queues, each call checks the next few. */
bool tl_followed_queues_update(struct tl_followed_queues *queues, struct tl_redis *redis,
                               struct tl_error *err);

/* The next serve builds a new line of this queue, or of all queues (NULL). */
void tl_followed_queues_rebuild(struct tl_followed_queues *queues, const char *queue);
/* The next serve reads the settings of this queue. */
void tl_followed_queues_reload(struct tl_followed_queues *queues, const char *queue);
bool tl_followed_queues_serve(struct tl_followed_queues *queues, struct tl_redis *redis,
                              struct tl_error *err);

/* Waits up to block_ms for events and posts them; returns immediately when it follows no queue.
 * *entries gets how many came. */
bool tl_followed_queues_read(struct tl_followed_queues *queues, struct tl_redis *redis,
                             int64_t block_ms, size_t *entries, struct tl_error *err);
/* The number of queues whose events are followed. */
size_t tl_followed_queues_count(const struct tl_followed_queues *queues);

#endif
