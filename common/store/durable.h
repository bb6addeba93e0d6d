/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waits until what a connection has read survives more than a crash of Redis: until it is on the
 * disk, or on a replica (the setting redis.durability). WAIT and WAITAOF wait for the writes of
 * their own connection only, so the one that has read writes something itself and waits for that.
 */
#ifndef TL_DURABLE_H
#define TL_DURABLE_H

#include <stdbool.h>

#include "common/base/error.h"
#include "common/config/settings.h"
#include "common/store/keys.h"
#include "common/store/redis.h"

/* Zeroed, as with the mode `memory`: there is nothing to wait for. */
struct tl_durable {
    enum tl_durability mode;
    char key[TL_KEY_MAX]; /* of its own; at a queue, its name in braces follows */
};

void tl_durable_init(struct tl_durable *durable, enum tl_durability mode, const char *key_prefix);
/* For a new connection: can this server do what the mode needs? */
bool tl_durable_supported(const struct tl_durable *durable, struct tl_redis *redis,
                          struct tl_error *err);
/* Waits for at most a second, for all that the connection of this queue has read; TL_ERR_MISCONF
 * when that was not enough. */
bool tl_durable_wait(const struct tl_durable *durable, struct tl_redis *redis, const char *queue,
                     struct tl_error *err);

/* After that: has the last write of this connection got there by now? Asks without waiting long. */
bool tl_durable_caught_up(const struct tl_durable *durable, struct tl_redis *redis);

#endif
