/* SPDX-License-Identifier: Apache-2.0 */
/* A queue that an operator deleted: tl:{q}:retired (docs/contributors/wire-format.md). */
#ifndef TL_RETIRED_H
#define TL_RETIRED_H

#include <stdbool.h>

#include "common/base/error.h"
#include "common/store/redis.h"

/* Was the queue deleted, and not created again by an operator since? Then no program creates it,
 * although it may be in the configuration. */
bool tl_retired_read(struct tl_redis *redis, const char *key_prefix, const char *queue, bool *away,
                     struct tl_error *err);
/* Warns that a queue of the configuration stays away. */
void tl_retired_warn(const char *queue);

#endif
