/* SPDX-License-Identifier: Apache-2.0 */
/* Whose turn it is between lanes with weights, as the store has it (common/line/turns.h). */
#ifndef TL_TURNS_STATE_H
#define TL_TURNS_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/store/keys.h"
#include "common/store/redis.h"

/* Bytes of the field, with the terminating zero: weights, period, and a number for each lane. */
#define TL_TURNS_FIELD_MAX 288

struct tl_turns_state {
    uint64_t event;                 /* the last one counted in it */
    char field[TL_TURNS_FIELD_MAX]; /* `turns` of the state; "": none */
};

/* TL_ERR_NOQUEUE when the queue does not exist. */
bool tl_turns_read(struct tl_redis *redis, const struct tl_keys *keys, struct tl_turns_state *turns,
                   struct tl_error *err);

#endif
