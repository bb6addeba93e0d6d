/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "common/store/store.h"
#include "worker/admin/backend.h"

struct tl_admin_backend {
    struct tl_control *control;
    struct tl_store *store;
};

const char *tl_admin_backend_redis_url(const struct tl_config *config)
{
    return config->admin.redis_url[0] != '\0' ? config->admin.redis_url : config->redis.url;
}

struct tl_admin_backend *tl_admin_backend_new(const struct tl_config *config, struct tl_error *err)
{
    const struct tl_redis_settings settings =
        tl_redis_settings_of(config, tl_admin_backend_redis_url(config));
    struct tl_admin_backend *backend = calloc(1, sizeof(*backend));
    if (backend == NULL) {
        tl_error_set(err, TL_ERR_NOMEM, "no memory for the admin API");
        return NULL;
    }
    backend->control = tl_control_new(config, settings.url, err);
    backend->store = backend->control != NULL ? tl_store_new(&settings, err) : NULL;
    if (backend->store == NULL)
        tl_admin_backend_free(&backend);
    return backend;
}

void tl_admin_backend_free(struct tl_admin_backend **backend)
{
    if (*backend == NULL)
        return;
    tl_control_free(&(*backend)->control);
    tl_store_free(&(*backend)->store);
    free(*backend);
    *backend = NULL;
}

struct tl_control *tl_admin_backend_control(struct tl_admin_backend *backend)
{
    return backend->control;
}

struct tl_redis *tl_admin_backend_redis(struct tl_admin_backend *backend, struct tl_error *err)
{
    return tl_store_connect(backend->store, err) ? tl_store_common(backend->store) : NULL;
}
