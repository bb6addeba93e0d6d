/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Forgets a visitor: erases the id wherever the store keeps it (docs/operators/privacy.md lists the
 * places). In steps, each of which is bounded; one that fails half-way can be repeated.
 */
#ifndef TL_FORGET_H
#define TL_FORGET_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/store/actor.h"
#include "common/store/keys.h"
#include "common/store/redis.h"

/* *places gets how many places held the id. The record of changes says that the actor did it,
 * without the id. TL_ERR_NOQUEUE; TL_ERR_STORE for a visitor who waits or is active, and so must be
 * removed first: nothing was erased. */
bool tl_forget(struct tl_redis *redis, const struct tl_keys *keys, const char *visitor,
               const struct tl_actor *actor, uint64_t *places, struct tl_error *err);

#endif
