/* SPDX-License-Identifier: Apache-2.0 */
/* What one thread of the admin process needs to do calls: connections to the store of its own. Not
 * thread-safe. */
#ifndef TL_ADMIN_BACKEND_H
#define TL_ADMIN_BACKEND_H

#include "common/config/settings.h"
#include "common/control/control.h"
#include "common/store/redis.h"

struct tl_admin_backend;

/* config is borrowed. Opens no connection. */
struct tl_admin_backend *tl_admin_backend_new(const struct tl_config *config, struct tl_error *err);
void tl_admin_backend_free(struct tl_admin_backend **backend);

struct tl_control *tl_admin_backend_control(struct tl_admin_backend *backend);
/* The connection for tokens, open; NULL when the store cannot be reached. */
struct tl_redis *tl_admin_backend_redis(struct tl_admin_backend *backend, struct tl_error *err);
/* The address of Redis for the admin process. */
const char *tl_admin_backend_redis_url(const struct tl_config *config);

#endif
