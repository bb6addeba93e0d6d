/* SPDX-License-Identifier: Apache-2.0 */
/* The connections to the store: callers ask for the one that serves a queue. Today one Redis serves
 * all; with a Redis Cluster it would depend on the queue's hash tag. */
#ifndef TL_STORE_H
#define TL_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/store/redis.h"

struct tl_store;

struct tl_store *tl_store_new(const struct tl_redis_settings *settings, struct tl_error *err);
void tl_store_free(struct tl_store **store);
/* Opens all connections that are not open, or that no longer lead to a master. */
bool tl_store_connect(struct tl_store *store, struct tl_error *err);
/* See tl_redis_measure: of all connections. */
void tl_store_measure(struct tl_store *store, void (*measured)(void *context, int64_t us),
                      void *context);
/* Counts the connections that were opened: after another one than before, the store may be another
 * one. */
uint64_t tl_store_epoch(const struct tl_store *store);
/* The connection of a queue, borrowed. */
struct tl_redis *tl_store_of(struct tl_store *store, const char *queue);
/* The connection for data that belongs to no queue, borrowed. */
struct tl_redis *tl_store_common(struct tl_store *store);

#endif
