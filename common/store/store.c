/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/config/redis_url.h"
#include "common/store/cluster.h"
#include "common/store/keys.h"
#include "common/store/sentinel.h"
#include "common/store/store.h"

/* After a failure of a connection the watching thread gets a look at the node first: one that hangs
 * accepts connections, and would hold up the caller once more. */
enum { RECONNECT_MS = TL_CLUSTER_ASK_MS + 100 };

/* A node of a cluster. Its connection lives as long as the store, as callers keep it. */
struct node {
    struct tl_redis_address address;
    struct tl_redis *redis;
    bool named; /* by the map */
    bool was_open;
    int64_t retry_ms; /* a connection that failed is not tried before */
    uint32_t since;   /* the layout with which it got its address */
};

struct tl_store {
    struct tl_redis *redis;       /* the only one; of a cluster: nobody's, and never open */
    struct tl_sentinel *sentinel; /* NULL: the address is fixed */
    /* Of a cluster; NULL and none otherwise: */
    struct tl_cluster *cluster;
    struct tl_cluster_map map;
    struct node nodes[TL_STORE_NODES_MAX];
    size_t n_nodes;
    struct node *at[TL_STORE_NODES_MAX]; /* those of the map */
    struct node *of[TL_CLUSTER_SLOTS];   /* who has each slot; NULL: nobody... */
    uint32_t since[TL_CLUSTER_SLOTS];    /* ...and since which layout */
    struct tl_redis_url url;
    char ca_file[256];
    struct tl_redis_settings settings; /* its texts are not kept, but for ca_file */
    unsigned common_slot;
    void (*measured)(void *context, int64_t us);
    void *measured_context;
};

static bool open_cluster(struct tl_store *store, const struct tl_redis_settings *settings,
                         struct tl_error *err)
{
    char key[TL_KEY_MAX];
    const char *prefix = settings->key_prefix != NULL ? settings->key_prefix : "";
    tl_redis_set_node(store->redis);
    store->common_slot = tl_cluster_slot(tl_key_common(prefix, TL_COMMON_QUEUES, key));
    if (settings->ca_file != NULL)
        snprintf(store->ca_file, sizeof(store->ca_file), "%s", settings->ca_file);
    store->settings =
        (struct tl_redis_settings){.ca_file = store->ca_file, .timeout_ms = settings->timeout_ms};
    store->cluster = tl_cluster_new(&store->url, settings, err);
    return store->cluster != NULL;
}

struct tl_store *tl_store_new(const struct tl_redis_settings *settings, struct tl_error *err)
{
    struct tl_store *store = calloc(1, sizeof(*store));
    if (store == NULL) {
        tl_error_set(err, TL_ERR_NOMEM, "no memory for the store");
        return NULL;
    }
    bool ok = tl_redis_url_parse(settings->url, &store->url, err) &&
              (store->redis = tl_redis_new_at(&store->url, settings, err)) != NULL;
    if (ok && store->url.cluster)
        ok = open_cluster(store, settings, err);
    else if (ok && store->url.n_sentinels > 0)
        ok = (store->sentinel = tl_sentinel_new(&store->url, settings, err)) != NULL;
    if (!ok)
        tl_store_free(&store);
    return store;
}

void tl_store_free(struct tl_store **store)
{
    struct tl_store *old = *store;
    *store = NULL;
    if (old == NULL)
        return;
    tl_redis_free(&old->redis);
    tl_sentinel_free(&old->sentinel);
    tl_cluster_free(&old->cluster);
    for (size_t i = 0; i < old->n_nodes; i++)
        tl_redis_free(&old->nodes[i].redis);
    explicit_bzero(&old->url, sizeof(old->url));
    free(old);
}

void tl_store_measure(struct tl_store *store, void (*measured)(void *context, int64_t us),
                      void *context)
{
    store->measured = measured;
    store->measured_context = context;
    tl_redis_measure(store->redis, measured, context);
}

/* ---- a cluster ---- */

static struct node *find_node(struct tl_store *store, const struct tl_redis_address *address)
{
    for (size_t i = 0; i < store->n_nodes; i++)
        if (tl_redis_address_equal(&store->nodes[i].address, address))
            return &store->nodes[i];
    return NULL;
}

/* The node at an address. One that the map no longer names makes room for a new one. NULL with err.
 */
static struct node *node_at(struct tl_store *store, const struct tl_redis_address *address,
                            struct tl_error *err)
{
    struct node *node = find_node(store, address);
    if (node != NULL)
        return node;
    node = store->nodes;
    while (node < store->nodes + store->n_nodes && node->named)
        node++;
    if (node->redis == NULL &&
        (node->redis = tl_redis_new_at(&store->url, &store->settings, err)) == NULL)
        return NULL;
    if (node == store->nodes + store->n_nodes)
        store->n_nodes++;
    node->address = *address;
    node->was_open = false;
    node->retry_ms = 0;
    node->since = (uint32_t)store->map.layout;
    tl_redis_set_node(node->redis);
    tl_redis_lead_to(node->redis, address->host, address->port);
    tl_redis_measure(node->redis, store->measured, store->measured_context);
    return node;
}

/* Follows a change of the map. Connections that lead to no master of it are closed. */
static bool take_map(struct tl_store *store, struct tl_error *err)
{
    for (size_t i = 0; i < store->n_nodes; i++)
        store->nodes[i].named = false;
    for (size_t i = 0; i < store->map.n; i++) {
        struct node *node = find_node(store, &store->map.nodes[i]);
        if (node != NULL)
            node->named = true;
    }
    for (size_t i = 0; i < store->map.n; i++) {
        if ((store->at[i] = node_at(store, &store->map.nodes[i], err)) == NULL) {
            store->map.version = 0; /* it is taken again */
            return false;
        }
        store->at[i]->named = true;
    }
    for (size_t i = 0; i < store->n_nodes; i++)
        if (!store->nodes[i].named)
            tl_redis_close(store->nodes[i].redis);
    const uint32_t layout = (uint32_t)store->map.layout;
    for (size_t slot = 0; slot < TL_CLUSTER_SLOTS; slot++) {
        size_t i = store->map.slots[slot];
        struct node *node = i < store->map.n ? store->at[i] : NULL;
        if (node != store->of[slot] || (node != NULL && node->since == layout))
            store->since[slot] = layout;
        store->of[slot] = node;
    }
    return true;
}

/* One node away is the trouble of its own queues: true as long as one is open. */
static bool connect_cluster(struct tl_store *store, struct tl_error *err)
{
    uint64_t before = store->map.version;
    struct tl_error problem = {0};
    bool any = false, doubt = false;
    if (!tl_cluster_look(store->cluster, &store->map, err))
        return false;
    if (store->map.version != before && !take_map(store, err))
        return false;
    for (size_t i = 0; i < store->map.n; i++) {
        struct node *node = store->at[i];
        int64_t now_ms = tl_clock_ms();
        bool open = tl_redis_connected(node->redis); /* a replica answers that it has no slot */
        bool broke = node->was_open && !open;
        doubt = tl_redis_disowned(node->redis) || doubt || broke;
        if (broke)
            node->retry_ms = now_ms + RECONNECT_MS;
        if (!open && !store->map.away[i] && now_ms >= node->retry_ms) {
            open = tl_redis_connect(node->redis, &problem);
            doubt = doubt || !open;
            node->retry_ms = now_ms + RECONNECT_MS;
        }
        node->was_open = open;
        any = any || open;
    }
    if (doubt)
        tl_cluster_doubt(store->cluster);
    if (any)
        return true;
    if (problem.kind == TL_OK)
        tl_error_set(&problem, TL_ERR_CONNECT, "no node of the cluster can be reached");
    if (err != NULL)
        *err = problem;
    return false;
}

static struct tl_redis *redis_of_slot(const struct tl_store *store, unsigned slot)
{
    return store->of[slot] != NULL ? store->of[slot]->redis : store->redis;
}

/* ---- all kinds ---- */

bool tl_store_connect(struct tl_store *store, struct tl_error *err)
{
    struct tl_redis_address master;
    if (store->cluster != NULL)
        return connect_cluster(store, err);
    if (store->sentinel == NULL)
        return tl_redis_connect(store->redis, err);
    if (tl_redis_check(store->redis) && !tl_sentinel_moved(store->sentinel))
        return true;
    if (!tl_sentinel_find(store->sentinel, tl_clock_ms(), &master, err))
        return false;
    tl_redis_lead_to(store->redis, master.host, master.port);
    return tl_redis_connect(store->redis, err);
}

uint64_t tl_store_epoch(const struct tl_store *store)
{
    uint64_t epoch = tl_redis_epoch(store->redis) + store->map.layout;
    for (size_t i = 0; i < store->n_nodes; i++)
        epoch += tl_redis_epoch(store->nodes[i].redis);
    return epoch;
}

uint64_t tl_store_epoch_of(const struct tl_store *store, const char *queue)
{
    if (store->cluster == NULL)
        return tl_redis_epoch(store->redis);
    unsigned slot = tl_cluster_slot(queue);
    uint64_t opened = tl_redis_epoch(redis_of_slot(store, slot));
    return (uint64_t)store->since[slot] << 32 | (opened & UINT32_MAX);
}

struct tl_redis *tl_store_of_key(struct tl_store *store, const char *key)
{
    return store->cluster != NULL ? redis_of_slot(store, tl_cluster_slot(key)) : store->redis;
}

struct tl_redis *tl_store_of(struct tl_store *store, const char *queue)
{
    return tl_store_of_key(store, queue); /* the hash tag of its keys */
}

struct tl_redis *tl_store_common(struct tl_store *store)
{
    return store->cluster != NULL ? redis_of_slot(store, store->common_slot) : store->redis;
}

struct tl_redis *tl_store_reach(struct tl_store *store, const char *queue, struct tl_error *err)
{
    if (!tl_store_connect(store, err))
        return NULL;
    struct tl_redis *redis = queue != NULL ? tl_store_of(store, queue) : tl_store_common(store);
    if (tl_redis_connected(redis))
        return redis;
    tl_error_set(err, TL_ERR_CONNECT, "the node of the cluster that has %s%s cannot be reached",
                 queue != NULL ? "queue " : "the list of queues", queue != NULL ? queue : "");
    return NULL;
}

size_t tl_store_nodes(const struct tl_store *store)
{
    return store->cluster != NULL ? store->map.n : 1;
}

struct tl_redis *tl_store_node(const struct tl_store *store, size_t i)
{
    return store->cluster != NULL ? store->at[i]->redis : store->redis;
}
