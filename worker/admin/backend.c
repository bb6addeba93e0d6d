/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdlib.h>

#include "worker/admin/backend.h"

enum { BACKENDS = 4, WAITING_MAX = TL_ADMIN_CALLS_MAX - BACKENDS };

struct tl_admin_backends {
    pthread_mutex_t mutex; /* for what follows */
    pthread_cond_t changed;
    struct tl_admin_backend all[BACKENDS];
    struct tl_admin_backend *free[BACKENDS];
    unsigned n_free;
    unsigned waiting;
    uint64_t came, served; /* numbers of those who wait, in their order */
    bool closed;
};

const char *tl_admin_backend_redis_url(const struct tl_config *config)
{
    return config->admin.redis_url[0] != '\0' ? config->admin.redis_url : config->redis.url;
}

struct tl_redis *tl_admin_backend_redis(struct tl_admin_backend *backend, const char *queue,
                                        struct tl_error *err)
{
    return tl_store_reach(backend->store, queue, err);
}

struct tl_admin_backend *tl_admin_backend_borrow(struct tl_admin_backends *backends,
                                                 struct tl_control_answer *answer)
{
    struct tl_admin_backend *backend = NULL;
    pthread_mutex_lock(&backends->mutex);
    bool room = answer == NULL || backends->waiting < WAITING_MAX || backends->closed;
    if (room) {
        uint64_t number = backends->came++;
        backends->waiting++;
        while (!backends->closed && (backends->n_free == 0 || backends->served != number))
            pthread_cond_wait(&backends->changed, &backends->mutex);
        backends->waiting--;
        if (!backends->closed)
            backend = backends->free[--backends->n_free];
        backends->served++;
        /* The next one may have its turn, too. */
        pthread_cond_broadcast(&backends->changed);
    }
    pthread_mutex_unlock(&backends->mutex);
    if (backend == NULL && answer != NULL)
        tl_control_problem(answer, room ? TL_REFUSAL_STOPPING : TL_REFUSAL_BUSY, "%s",
                           room ? "This process is shutting down"
                                : "Too many requests are in work");
    return backend;
}

void tl_admin_backend_return(struct tl_admin_backends *backends, struct tl_admin_backend *backend)
{
    pthread_mutex_lock(&backends->mutex);
    backends->free[backends->n_free++] = backend;
    pthread_cond_broadcast(&backends->changed);
    pthread_mutex_unlock(&backends->mutex);
}

struct tl_admin_backends *tl_admin_backends_new(const struct tl_config *config,
                                                struct tl_error *err)
{
    const struct tl_redis_settings settings =
        tl_redis_settings_of(config, tl_admin_backend_redis_url(config));
    struct tl_admin_backends *backends = calloc(1, sizeof(*backends));
    if (backends == NULL) {
        tl_error_set(err, TL_ERR_NOMEM, "no memory for the admin API");
        return NULL;
    }
    pthread_mutex_init(&backends->mutex, NULL);
    pthread_cond_init(&backends->changed, NULL);
    for (unsigned i = 0; i < BACKENDS; i++) {
        struct tl_admin_backend *backend = &backends->all[i];
        backends->free[backends->n_free++] = backend;
        backend->control = tl_control_new(config, settings.url, err);
        backend->store = backend->control != NULL ? tl_store_new(&settings, err) : NULL;
        if (backend->store == NULL) {
            tl_admin_backends_free(&backends);
            return NULL;
        }
    }
    return backends;
}

void tl_admin_backends_close(struct tl_admin_backends *backends)
{
    pthread_mutex_lock(&backends->mutex);
    backends->closed = true;
    pthread_cond_broadcast(&backends->changed);
    while (backends->n_free < BACKENDS)
        pthread_cond_wait(&backends->changed, &backends->mutex);
    pthread_mutex_unlock(&backends->mutex);
}

void tl_admin_backends_free(struct tl_admin_backends **backends)
{
    if (*backends == NULL)
        return;
    for (unsigned i = 0; i < BACKENDS; i++) {
        tl_control_free(&(*backends)->all[i].control);
        tl_store_free(&(*backends)->all[i].store);
    }
    pthread_cond_destroy(&(*backends)->changed);
    pthread_mutex_destroy(&(*backends)->mutex);
    free(*backends);
    *backends = NULL;
}
