/* SPDX-License-Identifier: Apache-2.0 */
/* How far lines are behind their ingest streams, for operators and autoscalers. */
#ifndef TL_LAG_H
#define TL_LAG_H

#include <stdbool.h>
#include <stdint.h>

#include "common/store/keys.h"
#include "common/store/library.h"
#include "common/store/redis.h"

struct tl_lag {
    int64_t entries; /* of ingest streams, not yet applied */
    int64_t age_ms;  /* of the oldest of them, by the clock of the store; 0: none */
};

/* Measures the lag of one queue and adds it to *lag: the sum of the entries, the greatest age.
 * args is a buffer to reuse. False with err leaves *lag unchanged. */
bool tl_lag_add(struct tl_lag *lag, struct tl_redis *redis, const struct tl_keys *keys,
                struct tl_args *args, struct tl_error *err);

#endif
