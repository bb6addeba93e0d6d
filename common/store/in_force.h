/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The settings in force of all queues, as this process read them last. So a store that forgets does
 * not open a paused queue or undo a lowered capacity: a queue that is gone although no operator
 * deleted it is made again with them, and a change that the store has lost is written again.
 */
#ifndef TL_IN_FORCE_H
#define TL_IN_FORCE_H

#include <stdbool.h>
#include <stddef.h>

#include "common/config/settings.h"
#include "common/store/actor.h"
#include "common/store/redis.h"
#include "common/wire/names.h"

struct tl_in_force;

/* Borrows both for its life. NULL when out of memory. */
struct tl_in_force *tl_in_force_new(const char *key_prefix, const struct tl_actor *actor);
void tl_in_force_free(struct tl_in_force **in_force);

/* Reads the settings of the next queues of this sorted list, 32 at most, or of all, where they have
 * changed. Where the store has older ones, it gets those known here; then all are read, as one is
 * rarely alone. A queue that cannot be read is left out. False when the store cannot be used. */
bool tl_in_force_read(struct tl_in_force *in_force, struct tl_redis *redis,
                      char (*names)[TL_QUEUE_NAME_MAX + 1], size_t n, bool all,
                      struct tl_error *err);
/* Makes those queues again that are not in this sorted list of all there are, and forgets those
 * that an operator deleted. *made: the list has changed. False when the store cannot be used. */
bool tl_in_force_make_lost(struct tl_in_force *in_force, struct tl_redis *redis,
                           char (*names)[TL_QUEUE_NAME_MAX + 1], size_t n, bool *made,
                           struct tl_error *err);
/* NULL: not known. Valid until the next call of one of these. */
const struct tl_queue_settings *tl_in_force_of(const struct tl_in_force *in_force,
                                               const char *queue);

#endif
