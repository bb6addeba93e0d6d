/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/config/redis_url.h"
#include "common/store/sentinel.h"
#include "common/store/store.h"

struct tl_store {
    struct tl_redis *redis;
    struct tl_sentinel *sentinel; /* NULL: the address is fixed */
};

struct tl_store *tl_store_new(const struct tl_redis_settings *settings, struct tl_error *err)
{
    struct tl_store *store = calloc(1, sizeof(*store));
    if (store == NULL) {
        tl_error_set(err, TL_ERR_NOMEM, "no memory for the store");
        return NULL;
    }
    struct tl_redis_url url;
    bool ok = tl_redis_url_parse(settings->url, &url, err) &&
              (store->redis = tl_redis_new_at(&url, settings, err)) != NULL;
    if (ok && url.n_sentinels > 0)
        ok = (store->sentinel = tl_sentinel_new(&url, settings, err)) != NULL;
    explicit_bzero(&url, sizeof(url));
    if (!ok)
        tl_store_free(&store);
    return store;
}

void tl_store_free(struct tl_store **store)
{
    if (*store == NULL)
        return;
    tl_redis_free(&(*store)->redis);
    tl_sentinel_free(&(*store)->sentinel);
    free(*store);
    *store = NULL;
}

void tl_store_measure(struct tl_store *store, void (*measured)(void *context, int64_t us),
                      void *context)
{
    tl_redis_measure(store->redis, measured, context);
}

bool tl_store_connect(struct tl_store *store, struct tl_error *err)
{
    struct tl_redis_address master;
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
    return tl_redis_epoch(store->redis);
}

struct tl_redis *tl_store_of(struct tl_store *store, const char *queue)
{
    (void)queue; /* one node serves them all */
    return store->redis;
}

struct tl_redis *tl_store_common(struct tl_store *store)
{
    return store->redis;
}
