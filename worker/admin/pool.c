/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "worker/admin/pool.h"

enum { THREADS_MAX = 16 };

struct thread {
    struct tl_admin_pool *pool;
    void *context;
    pthread_t id;
};

struct tl_admin_pool {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct tl_admin_pool_job *first, **end;
    size_t waiting, waiting_max;
    bool ending;
    size_t n;
    struct thread threads[THREADS_MAX];
};

static void *work(void *argument)
{
    const struct thread *thread = argument;
    struct tl_admin_pool *pool = thread->pool;
    pthread_mutex_lock(&pool->mutex);
    for (;;) {
        struct tl_admin_pool_job *job = pool->first;
        if (job == NULL && pool->ending)
            break;
        if (job == NULL) {
            pthread_cond_wait(&pool->changed, &pool->mutex);
            continue;
        }
        pool->first = job->next;
        if (pool->first == NULL)
            pool->end = &pool->first;
        pool->waiting--;
        pthread_mutex_unlock(&pool->mutex);
        job->run(job, thread->context);
        pthread_mutex_lock(&pool->mutex);
    }
    pthread_mutex_unlock(&pool->mutex);
    return NULL;
}

struct tl_admin_pool *tl_admin_pool_new(void *const contexts[], size_t n, size_t waiting_max,
                                        struct tl_error *err)
{
    struct tl_admin_pool *pool = calloc(1, sizeof(*pool));
    if (pool == NULL || n > THREADS_MAX) {
        free(pool);
        tl_error_set(err, TL_ERR_NOMEM, "no memory for %zu threads", n);
        return NULL;
    }
    pool->end = &pool->first;
    pool->waiting_max = waiting_max;
    pthread_mutex_init(&pool->mutex, NULL);
    pthread_cond_init(&pool->changed, NULL);
    for (size_t i = 0; i < n; i++) {
        struct thread *thread = &pool->threads[i];
        *thread = (struct thread){.pool = pool, .context = contexts[i]};
        int failure = pthread_create(&thread->id, NULL, work, thread);
        if (failure != 0) {
            tl_error_set(err, TL_ERR_SYSTEM, "a thread could not be started: %s",
                         strerror(failure)); /* NOLINT(concurrency-mt-unsafe) */
            tl_admin_pool_free(&pool);
            return NULL;
        }
        pool->n++;
    }
    return pool;
}

static void add(struct tl_admin_pool *pool, struct tl_admin_pool_job *job)
{
    job->next = NULL;
    *pool->end = job;
    pool->end = &job->next;
    pool->waiting++;
    pthread_cond_signal(&pool->changed);
}

bool tl_admin_pool_offer(struct tl_admin_pool *pool, struct tl_admin_pool_job *job)
{
    pthread_mutex_lock(&pool->mutex);
    bool room = pool->waiting < pool->waiting_max;
    if (room)
        add(pool, job);
    pthread_mutex_unlock(&pool->mutex);
    return room;
}

void tl_admin_pool_submit(struct tl_admin_pool *pool, struct tl_admin_pool_job *job)
{
    pthread_mutex_lock(&pool->mutex);
    add(pool, job);
    pthread_mutex_unlock(&pool->mutex);
}

void tl_admin_pool_free(struct tl_admin_pool **pool_in)
{
    struct tl_admin_pool *pool = *pool_in;
    if (pool == NULL)
        return;
    pthread_mutex_lock(&pool->mutex);
    pool->ending = true;
    pthread_cond_broadcast(&pool->changed);
    pthread_mutex_unlock(&pool->mutex);
    for (size_t i = 0; i < pool->n; i++)
        pthread_join(pool->threads[i].id, NULL);
    pthread_cond_destroy(&pool->changed);
    pthread_mutex_destroy(&pool->mutex);
    free(pool);
    *pool_in = NULL;
}
