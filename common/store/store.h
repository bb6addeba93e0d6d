/* SPDX-License-Identifier: Apache-2.0 */
/* The connections to the store: callers ask for the one that serves a queue. One Redis serves all;
 * in a Redis Cluster it is the master that has the slot of the queue's hash tag. */
#ifndef TL_STORE_H
#define TL_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/store/redis.h"

struct tl_store;

struct tl_store *tl_store_new(const struct tl_redis_settings *settings, struct tl_error *err);
void tl_store_free(struct tl_store **store);
/* Opens all connections that are not open, or that no longer lead to a master, and follows slots
 * that have moved. In a cluster it is enough that one is open: commands over the others fail. */
bool tl_store_connect(struct tl_store *store, struct tl_error *err);
/* See tl_redis_measure: of all connections. */
void tl_store_measure(struct tl_store *store, void (*measured)(void *context, int64_t us),
                      void *context);
/* Counts the connections that were opened, and the changes of who has which slot of a cluster:
 * after another one than before, the store may be another one, and tl_store_of is to be asked
 * again. */
uint64_t tl_store_epoch(const struct tl_store *store);
/* The same for one queue: another value than before, when another node has it, or its connection
 * was opened again. What happens to one node of a cluster concerns its own queues alone. */
uint64_t tl_store_epoch_of(const struct tl_store *store, const char *queue);
/* The connection of a queue, borrowed. It lives as long as the store. */
struct tl_redis *tl_store_of(struct tl_store *store, const char *queue);
/* The same by a key. */
struct tl_redis *tl_store_of_key(struct tl_store *store, const char *key);
/* The connection for data that belongs to no queue, borrowed. */
struct tl_redis *tl_store_common(struct tl_store *store);
/* For a few commands: connects, and returns the open connection of a queue, or that for data of no
 * queue (NULL). NULL with err. */
struct tl_redis *tl_store_reach(struct tl_store *store, const char *queue, struct tl_error *err);
/* All of them, i from 0: one, or the masters of a cluster. */
size_t tl_store_nodes(const struct tl_store *store);
struct tl_redis *tl_store_node(const struct tl_store *store, size_t i);

#endif
