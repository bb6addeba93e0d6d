/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The admin listener of the worker: the admin API and the dashboard, beside the probes and metrics
 * that every program serves. Each connection has a thread, so a probe is answered whatever the API
 * does; what needs the store borrows one of a few connections to it.
 */
#ifndef TL_ADMIN_SERVER_H
#define TL_ADMIN_SERVER_H

#include "common/config/settings.h"
#include "common/role/admin.h"
#include "worker/http/limiter.h"
#include "worker/page/look.h"

struct tl_admin_server;

struct tl_admin_server_settings {
    const struct tl_config *config; /* borrowed */
    /* Of the previews; borrowed. A reload replaces the events. */
    const struct tl_brand *brand;
    struct tl_event_looks *events;
    struct tl_admin_source source;
    struct tl_limiter *limiter; /* borrowed */
};

/* NULL on failure. */
struct tl_admin_server *tl_admin_server_start(const struct tl_admin_server_settings *settings,
                                              struct tl_error *err);
/* Takes over the pages of events of a new configuration, for the previews; on failure the old ones
 * stay. */
bool tl_admin_server_reload(struct tl_admin_server *server, const struct tl_config *config,
                            struct tl_error *err);
/* Answers what is in work, ends the streams and closes all connections. */
void tl_admin_server_stop(struct tl_admin_server **server);

#endif
