/* SPDX-License-Identifier: Apache-2.0 */
/* Deleting a queue. */
#ifndef TL_CONTROL_DELETION_H
#define TL_CONTROL_DELETION_H

#include <stdbool.h>
#include <stdint.h>

#include "common/store/actor.h"
#include "common/store/keys.h"
#include "common/store/redis.h"

/* Deletes the queue: its line, its sessions and its settings (delete.lua), and takes it off the
 * list. `none`: the connection for what belongs to no queue. kept_ms: how long its record of
 * changes stays. *existed is false when there was none. May be repeated after a failure. */
bool tl_queue_delete(struct tl_redis *redis, struct tl_redis *none, const char *key_prefix,
                     const struct tl_keys *keys, int64_t kept_ms, const struct tl_actor *actor,
                     bool *existed, struct tl_error *err);

#endif
