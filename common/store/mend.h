/* SPDX-License-Identifier: Apache-2.0 */
/* Damaged data of one queue: what is wrong with it, and mending what can be mended (mend.lua). */
#ifndef TL_MEND_H
#define TL_MEND_H

#include <stdbool.h>
#include <stdint.h>

#include "common/config/config.h"
#include "common/store/actor.h"
#include "common/store/keys.h"
#include "common/store/redis.h"
#include "common/store/troubles.h"

/* The settings that a program can offer for a queue whose own are missing. */
struct tl_mend_offer {
    bool from_memory; /* as read from the store earlier; else from the configuration file */
    const struct tl_queue_settings *settings; /* NULL: none */
    const struct tl_actor *actor;             /* what is mended is recorded as done by it */
};

/* Says what is wrong with the data of a queue, and changes nothing. *wrong gets a sentence for the
 * operator, "" for a sound queue. False with err when the store did not answer. */
bool tl_queue_examine(struct tl_redis *redis, const struct tl_keys *keys, char wrong[320],
                      struct tl_error *err);

/* A queue could not be served: mends what can be mended, and sets the queue aside. err, the reason,
 * becomes what was mended or what the operator should do, if that is known. False, with nothing
 * done, for a queue that is not in the store at all. */
bool tl_queue_set_aside(struct tl_troubles *troubles, struct tl_redis *redis,
                        const struct tl_keys *keys, const struct tl_mend_offer *offer,
                        struct tl_error *err, int64_t now_ms);

#endif
