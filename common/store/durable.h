/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waits until what a connection has read survives more than a crash of Redis: until it is on the
 * disk, or on a replica (the setting redis.durability).
 *
 * WAIT and WAITAOF wait for the writes of their own connection only. What was read was written
 * before, by others; so the connection writes something itself and waits for that. It has to be the
 * connection that has read: another one may lead to another server by now.
 */
#ifndef TL_DURABLE_H
#define TL_DURABLE_H

#include <stdbool.h>

#include "common/base/error.h"
#include "common/config/settings.h"
#include "common/store/redis.h"

struct tl_durable;

/* NULL when out of memory. */
struct tl_durable *tl_durable_new(enum tl_durability mode, const char *key_prefix);
void tl_durable_free(struct tl_durable **durable);

/* For a new connection: can this server do what the mode needs? */
bool tl_durable_supported(const struct tl_durable *durable, struct tl_redis *redis,
                          struct tl_error *err);
/* Waits for at most a second; TL_ERR_MISCONF when that was not enough. */
bool tl_durable_wait(struct tl_durable *durable, struct tl_redis *redis, struct tl_error *err);

#endif
