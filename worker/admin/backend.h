/* SPDX-License-Identifier: Apache-2.0 */
/* What the calls of the admin API ask the store by. There are only a few, which the threads of the
 * listener borrow in turn: the store has bounded work from here. */
#ifndef TL_ADMIN_BACKEND_H
#define TL_ADMIN_BACKEND_H

#include "common/config/settings.h"
#include "common/control/control.h"

/* Thread-safe. */
struct tl_admin_backends;

/* config is borrowed. Opens no connection. */
struct tl_admin_backends *tl_admin_backends_new(const struct tl_config *config,
                                                struct tl_error *err);
/* Lends none from now on, and waits until all are back. */
void tl_admin_backends_close(struct tl_admin_backends *backends);
void tl_admin_backends_free(struct tl_admin_backends **backends); /* NULL allowed */

/* Waits for one, first come, first served. NULL: the process shuts down; or, with an answer, so
 * many wait already that this one must not: the answer is the problem. answer may be NULL. */
struct tl_control *tl_admin_backend_borrow(struct tl_admin_backends *backends,
                                           struct tl_control_answer *answer);
void tl_admin_backend_return(struct tl_admin_backends *backends, struct tl_control *control);

/* The address of Redis for the admin process. */
const char *tl_admin_backend_redis_url(const struct tl_config *config);

/* Calls that wait for a backend, and those that have one: at most. */
#define TL_ADMIN_CALLS_MAX 36u

#endif
