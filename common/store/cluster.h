/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which master of a Redis Cluster has which slot. A thread asks all known nodes while a caller
 * doubts what is known, because a node does not serve a slot or cannot be reached: at once, then
 * after pauses that grow to a second. Callers who send commands find out by themselves that the map
 * is old, so for others, and for replicas that come and go, the thread asks once in ten seconds; in
 * between it keeps no connection. It believes the node that has seen the newest configuration of
 * the cluster, because one that is cut off from the others goes on answering with what it knew. So
 * a node that hangs holds up this thread alone.
 */
#ifndef TL_CLUSTER_H
#define TL_CLUSTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/config/redis_url.h"
#include "common/store/redis.h"
#include "common/store/reply.h"

#define TL_CLUSTER_SLOTS  16384
#define TL_CLUSTER_ASK_MS 500 /* a node that has not answered by then is away */

struct tl_cluster;

/* As one node sees it. */
struct tl_cluster_map {
    uint64_t version;                                  /* counts changes; 0: nothing is known */
    uint64_t layout;                                   /* likewise, but for those of `away` */
    struct tl_redis_address nodes[TL_STORE_NODES_MAX]; /* masters with slots */
    bool away[TL_STORE_NODES_MAX];                     /* it did not answer when it was asked */
    size_t n;
    uint8_t slots[TL_CLUSTER_SLOTS]; /* the node of each; TL_STORE_NODES_MAX: nobody has it */
};

/* The slot of a key: that of what is in its first braces, if anything is. */
unsigned tl_cluster_slot(const char *key);
/* Reads an answer to CLUSTER SLOTS. A node without an address of its own is the one that was asked,
 * at `host`. False, with TL_ERR_PROTOCOL, for what is none. */
bool tl_cluster_map_read(const struct tl_reply *reply, const char *host, struct tl_cluster_map *map,
                         struct tl_error *err);

/* Copies url and settings. Opens nothing. */
struct tl_cluster *tl_cluster_new(const struct tl_redis_url *url,
                                  const struct tl_redis_settings *settings, struct tl_error *err);
void tl_cluster_free(struct tl_cluster **cluster);
/* Brings the map up to date. The first call waits for the first answer of a node; TL_ERR_CONNECT
 * when none answers. */
bool tl_cluster_look(struct tl_cluster *cluster, struct tl_cluster_map *map, struct tl_error *err);
/* What is known may be out of date. */
void tl_cluster_doubt(struct tl_cluster *cluster);

#endif
