/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sentinels of a replicated store: they know which server is the master.
 *
 * They are asked at every connect, and once a second by a thread while a connection is open: their
 * message +switch-master is lost while a subscription is broken or its sentinel is cut off. The
 * answer with the highest epoch counts, so a sentinel that is out of date misleads only while no
 * other can be reached.
 */
#ifndef TL_SENTINEL_H
#define TL_SENTINEL_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/config/redis_url.h"
#include "common/store/redis.h"

struct tl_sentinel;

/* Copies url and settings; opens nothing. The password of the URL is also for sentinels that ask
 * for one. */
struct tl_sentinel *tl_sentinel_new(const struct tl_redis_url *url,
                                    const struct tl_redis_settings *settings, struct tl_error *err);
/* Stops the thread after its current question. */
void tl_sentinel_free(struct tl_sentinel **sentinel);

/* Asks the sentinels in turn for the address of the master. Takes up to a second for each that does
 * not answer. now_ms: local monotonic time. */
bool tl_sentinel_find(struct tl_sentinel *sentinel, int64_t now_ms, struct tl_redis_address *master,
                      struct tl_error *err);
/* Is the master another one than tl_sentinel_find said? Returns at once; the first call starts the
 * thread. */
bool tl_sentinel_moved(struct tl_sentinel *sentinel);

#endif
