/* SPDX-License-Identifier: Apache-2.0 */
/* A few threads that work jobs off, each with a context of its own. */
#ifndef TL_ADMIN_POOL_H
#define TL_ADMIN_POOL_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/error.h"

struct tl_admin_pool;

/* Part of its owner's struct, which stays until the job has run. Runs once for each submit. */
struct tl_admin_pool_job {
    void (*run)(struct tl_admin_pool_job *job, void *thread_context);
    struct tl_admin_pool_job *next; /* the pool's */
};

/* One thread for each of the contexts, which are borrowed. waiting_max: jobs that wait at most. */
struct tl_admin_pool *tl_admin_pool_new(void *const contexts[], size_t n, size_t waiting_max,
                                        struct tl_error *err);
/* False when too many wait. */
bool tl_admin_pool_offer(struct tl_admin_pool *pool, struct tl_admin_pool_job *job);
/* For jobs whose number is bounded elsewhere. */
void tl_admin_pool_submit(struct tl_admin_pool *pool, struct tl_admin_pool_job *job);
/* Runs all jobs that were submitted, and ends the threads. */
void tl_admin_pool_free(struct tl_admin_pool **pool);

#endif
