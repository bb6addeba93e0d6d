/* How far lines are behind their ingest streams: what operators and autoscalers look at. */
#ifndef TL_LAG_H
#define TL_LAG_H

#include <stdbool.h>
#include <stdint.h>

#include "common/store/keys.h"
#include "common/store/redis.h"
#include "common/store/script.h"

struct tl_lag {
    int64_t entries; /* of ingest streams, not yet applied */
    int64_t age_ms;  /* of the oldest of them, by the clock of the store; 0: none */
};

/* Asks the store about one queue and adds the answer to *lag: entries are summed, the greatest age
 * counts. script has tl_script_lag as its source or none yet, args is a buffer to reuse. False with
 * err: *lag is as it was. */
bool tl_lag_add(struct tl_lag *lag, struct tl_redis *redis, struct tl_script *script,
                const struct tl_keys *keys, struct tl_args *args, struct tl_error *err);

#endif
