#include <stdlib.h>

#include "common/store/store.h"

struct tl_store {
    struct tl_redis *redis;
};

struct tl_store *tl_store_new(const struct tl_redis_settings *settings, struct tl_error *err)
{
    struct tl_store *store = calloc(1, sizeof(*store));
    if (store == NULL) {
        tl_error_set(err, TL_ERR_NOMEM, "no memory for the store");
        return NULL;
    }
    store->redis = tl_redis_new(settings, err);
    if (store->redis == NULL)
        tl_store_free(&store);
    return store;
}

void tl_store_free(struct tl_store **store)
{
    if (*store == NULL)
        return;
    tl_redis_free(&(*store)->redis);
    free(*store);
    *store = NULL;
}

bool tl_store_connect(struct tl_store *store, struct tl_error *err)
{
    return tl_redis_connect(store->redis, err);
}

struct tl_redis *tl_store_of(struct tl_store *store, const char *queue)
{
    (void)queue; /* one node serves them all */
    return store->redis;
}
