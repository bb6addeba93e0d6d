/* What a command that looks at a running system needs: the configuration and the store. */
#ifndef TL_CTL_SESSION_H
#define TL_CTL_SESSION_H

#include "common/config/config.h"
#include "common/store/keys.h"
#include "common/store/store.h"

#include "ctl/command.h"

/* The file in the data folder in which `tellerline up` says where its private Redis is. */
#define TL_REDIS_URL_FILE "redis.url"

struct tl_ctl_session {
    const struct tl_config *config;
    struct tl_store *store;
};

/* Loads the configuration and connects. The Redis is, first wins: --redis, the configuration's, the
 * private one of a `tellerline up` that runs on the data folder. On failure nothing is left to
 * close. */
bool tl_ctl_session_open(struct tl_ctl_session *session, const struct tl_ctl_options *options,
                         struct tl_error *err);
void tl_ctl_session_close(struct tl_ctl_session *session);

/* The connection that serves a queue (NULL: what belongs to no queue), borrowed. Opens it again if
 * it broke; NULL when that fails. */
struct tl_redis *tl_ctl_session_redis(struct tl_ctl_session *session, const char *queue,
                                      struct tl_error *err);

/* The keys of a queue; TL_ERR_INVALID for a name that no queue can have. */
bool tl_ctl_session_keys(const struct tl_ctl_session *session, const char *queue,
                         struct tl_keys *keys, struct tl_error *err);

#endif
