/* SPDX-License-Identifier: Apache-2.0 */
/* Ingest entries that a program which is no dispatcher has read: taking them over. */
#ifndef TL_CLAIM_H
#define TL_CLAIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/log.h"
#include "common/store/keys.h"
#include "common/store/library.h"
#include "common/store/redis.h"

struct tl_claim {
    struct tl_args args;
    struct tl_log_limit log;
};

/* Takes over entries of one queue, a bounded number, and logs who had read them. Adds to *claimed
 * and, for entries whose payload is gone, to *lost. */
bool tl_claim_entries(struct tl_claim *claim, struct tl_redis *redis, const struct tl_keys *keys,
                      uint64_t *claimed, uint64_t *lost, struct tl_error *err);
/* Asks whether another consumer has read entries of the queue: send for each queue, then receive as
 * many answers in the same order. */
bool tl_claim_ask(struct tl_claim *claim, struct tl_redis *redis, const struct tl_keys *keys,
                  struct tl_error *err);
/* False with err when the store refused. */
bool tl_claim_answer(struct tl_redis *redis, bool *others, struct tl_error *err);

#endif
