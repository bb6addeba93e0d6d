/* SPDX-License-Identifier: Apache-2.0 */
/* What a call of the admin API needs to ask the store: connections of its own. There are only a
 * few, which the threads of the listener borrow in turn: the store has bounded work from here. */
#ifndef TL_ADMIN_BACKEND_H
#define TL_ADMIN_BACKEND_H

#include "common/config/settings.h"
#include "common/control/control.h"
#include "common/store/redis.h"
#include "common/store/store.h"

/* Of one thread at a time. */
struct tl_admin_backend {
    struct tl_control *control;
    struct tl_store *store;
};

/* All of them. Thread-safe. */
struct tl_admin_backends;

/* config is borrowed. Opens no connection. */
struct tl_admin_backends *tl_admin_backends_new(const struct tl_config *config,
                                                struct tl_error *err);
/* Lends none any more, and waits until all are back. */
void tl_admin_backends_close(struct tl_admin_backends *backends);
void tl_admin_backends_free(struct tl_admin_backends **backends); /* NULL allowed */

/* Waits for one, first come, first served. NULL: the process shuts down; or, with an answer, so
 * many wait already that this one must not: the answer is the problem. answer may be NULL. */
struct tl_admin_backend *tl_admin_backend_borrow(struct tl_admin_backends *backends,
                                                 struct tl_control_answer *answer);
void tl_admin_backend_return(struct tl_admin_backends *backends, struct tl_admin_backend *backend);

/* The connection of a queue, or that for tokens (NULL), open; NULL when it cannot be reached. */
struct tl_redis *tl_admin_backend_redis(struct tl_admin_backend *backend, const char *queue,
                                        struct tl_error *err);
/* The address of Redis for the admin process. */
const char *tl_admin_backend_redis_url(const struct tl_config *config);

/* Calls that wait for a backend, and those that have one: at most. */
#define TL_ADMIN_CALLS_MAX 36u

#endif
