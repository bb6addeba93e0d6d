/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration and the store, for commands that talk to a running system. */
#ifndef TL_CTL_SHELL_SESSION_H
#define TL_CTL_SHELL_SESSION_H

#include "common/config/config.h"
#include "common/store/actor.h"
#include "common/store/keys.h"
#include "common/store/store.h"

#include "ctl/shell/command.h"

/* File in the data folder with the address of the private Redis of `tellerline up`. */
#define TL_REDIS_URL_FILE "redis.url"

#define TL_CTL_URL_MAX 512

/* The address of the Redis that the options name: --redis, else the configured one, else the
 * private one of a `tellerline up` that runs on the data folder. */
bool tl_ctl_redis_url(const struct tl_config *config, const struct tl_ctl_options *options,
                      char url[TL_CTL_URL_MAX], struct tl_error *err);

struct tl_ctl_session {
    const struct tl_config *config;
    struct tl_store *store;
    struct tl_actor actor; /* who runs the command, for the record of changes */
};

/* Loads the configuration and connects. On failure there is nothing to close. */
bool tl_ctl_session_open(struct tl_ctl_session *session, const struct tl_ctl_options *options,
                         struct tl_error *err);
void tl_ctl_session_close(struct tl_ctl_session *session);

/* The connection that serves a queue, borrowed; queue NULL: the one for data of no queue.
 * Reconnects a broken connection; NULL when that fails. */
struct tl_redis *tl_ctl_session_redis(struct tl_ctl_session *session, const char *queue,
                                      struct tl_error *err);

/* The keys of a queue; TL_ERR_INVALID when the name is not valid. */
bool tl_ctl_session_keys(const struct tl_ctl_session *session, const char *queue,
                         struct tl_keys *keys, struct tl_error *err);

#endif
