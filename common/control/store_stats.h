/* SPDX-License-Identifier: Apache-2.0 */
/* How the store itself is: memory, persistence, latency. */
#ifndef TL_CONTROL_STORE_STATS_H
#define TL_CONTROL_STORE_STATS_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "common/store/redis.h"

/* Appends the command to the pipeline. */
bool tl_store_stats_ask(struct tl_redis *redis, struct tl_error *err);
/* Receives its answer. took_us: how long the pipeline took. NULL on failure. */
json_t *tl_store_stats_receive(struct tl_redis *redis, int64_t took_us, struct tl_error *err);

#endif
