/* SPDX-License-Identifier: Apache-2.0 */
/* The recovery of a queue whose data the store has lost (common/store/line/recovery.lua). */
#ifndef TL_RECOVERY_H
#define TL_RECOVERY_H

#include <stdbool.h>
#include <stdint.h>

#include "common/store/actor.h"
#include "common/store/draw_record.h"
#include "common/store/keys.h"
#include "common/store/redis.h"

struct tl_recovery {
    uint64_t lost_generation; /* whose places come back; 0: not known */
    uint64_t present;         /* generation of the queue */
    int64_t until_ms;         /* nobody is admitted until then, store's Unix time; 0: no recovery */
    uint64_t lost_size;       /* how many were waiting or active, as workers remember; 0: unknown */
    uint64_t restored;        /* how many have come back */
    int64_t full_since_ms;    /* of the line, beside the recovery: since when it is full; 0: it is
                                 not (line/settings.lua) */
    struct tl_draw_record draw; /* whose places changed, too */
};

/* TL_ERR_NOQUEUE when the queue does not exist. */
bool tl_recovery_read(struct tl_redis *redis, const struct tl_keys *keys,
                      struct tl_recovery *recovery, struct tl_error *err);

/* Lets the recovery end in this many ms, or begin. 0 ends it, and none begins by itself any more in
 * this generation. It is recorded (common/store/changes.h). */
bool tl_recovery_end_in(struct tl_redis *redis, const struct tl_keys *keys, int64_t ms,
                        const struct tl_actor *actor, struct tl_error *err);

#endif
