/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdlib.h>

#include "worker/admin/backend.h"

enum { BACKENDS = 4, WAITING_MAX = TL_ADMIN_CALLS_MAX - BACKENDS };

struct tl_admin_backends {
    pthread_mutex_t mutex; /* for what follows */
    pthread_cond_t changed;
    struct tl_control *all[BACKENDS], *free[BACKENDS];
    unsigned n_free;
    unsigned waiting;
    uint64_t came, served; /* numbers of those who wait, in their order */
    bool closed;
};

const char *tl_admin_backend_redis_url(const struct tl_config *config)
{
    return config->admin.redis_url[0] != '\0' ? config->admin.redis_url : config->redis.url;
}

struct tl_control *tl_admin_backend_borrow(struct tl_admin_backends *backends,
                                           struct tl_control_answer *answer)
{
    struct tl_control *control = NULL;
    pthread_mutex_lock(&backends->mutex);
    bool room = answer == NULL || backends->waiting < WAITING_MAX || backends->closed;
    if (room) {
        uint64_t number = backends->came++;
        backends->waiting++;
        while (!backends->closed && (backends->n_free == 0 || backends->served != number))
            pthread_cond_wait(&backends->changed, &backends->mutex);
        backends->waiting--;
        if (!backends->closed)
            control = backends->free[--backends->n_free];
        backends->served++;
        /* The next one may have its turn, too. */
        pthread_cond_broadcast(&backends->changed);
    }
    pthread_mutex_unlock(&backends->mutex);
    if (control == NULL && answer != NULL)
        tl_control_problem(answer, room ? TL_REFUSAL_STOPPING : TL_REFUSAL_BUSY, "%s",
                           room ? "This process is shutting down"
                                : "Too many requests are in work");
    return control;
}

void tl_admin_backend_return(struct tl_admin_backends *backends, struct tl_control *control)
{
    pthread_mutex_lock(&backends->mutex);
    backends->free[backends->n_free++] = control;
    pthread_cond_broadcast(&backends->changed);
    pthread_mutex_unlock(&backends->mutex);
}

struct tl_admin_backends *tl_admin_backends_new(const struct tl_config *config,
                                                struct tl_error *err)
{
    struct tl_admin_backends *backends = calloc(1, sizeof(*backends));
    if (backends == NULL) {
        tl_error_set(err, TL_ERR_NOMEM, "no memory for the admin API");
        return NULL;
    }
    pthread_mutex_init(&backends->mutex, NULL);
    pthread_cond_init(&backends->changed, NULL);
    for (unsigned i = 0; i < BACKENDS; i++) {
        backends->all[i] = tl_control_new(config, tl_admin_backend_redis_url(config), err);
        if (backends->all[i] == NULL) {
            tl_admin_backends_free(&backends);
            return NULL;
        }
        backends->free[backends->n_free++] = backends->all[i];
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
    for (unsigned i = 0; i < BACKENDS; i++)
        tl_control_free(&(*backends)->all[i]);
    pthread_cond_destroy(&(*backends)->changed);
    pthread_mutex_destroy(&(*backends)->mutex);
    free(*backends);
    *backends = NULL;
}
