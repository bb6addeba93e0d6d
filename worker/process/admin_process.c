/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/log.h"
#include "common/role/signals.h"
#include "common/store/reply.h"
#include "common/store/store.h"
#include "worker/admin/backend.h"
#include "worker/admin/server.h"
#include "worker/process/process.h"

enum { LOOK_MS = 1000 }; /* between looks at the store */

static bool take(void *context, const struct tl_config *config, struct tl_error *err)
{
    return tl_admin_server_reload(context, config, err);
}

/* The processes of the worker read the same file, and log and count a mistake in it: without them
 * this one does. */
static void reload(struct tl_shared *shared, const char *role, struct tl_admin_server *server)
{
    struct tl_error err = {0};
    if (shared->board.n == 0) {
        tl_reload(&(struct tl_reload){.config_path = shared->config_path,
                                      .role = role,
                                      .take = take,
                                      .context = server,
                                      .outcome = &shared->board.head->reload,
                                      .taken = "previews of pages"});
        return;
    }
    const struct tl_config *config = tl_config_load(shared->config_path, &err);
    if (config == NULL || !tl_admin_server_reload(server, config, &err))
        tl_debug("the previews stay as they are: %s", err.text);
    tl_config_free(&config);
}

/* Does the store, or any node of it, answer the user of the admin API? */
static void look_at_store(struct tl_store *store, struct tl_board_head *head)
{
    struct tl_error err = {0};
    struct tl_reply *reply = NULL;
    bool open = tl_store_connect(store, &err);
    for (size_t i = 0; open && reply == NULL && i < tl_store_nodes(store); i++)
        reply = tl_ask(tl_store_node(store, i), &err, "PING", NULL);
    int readiness = reply != NULL ? TL_READY : TL_STORE_DOWN;
    if (atomic_exchange(&head->admin_readiness, readiness) != readiness && reply == NULL)
        tl_log(TL_LOG_WARN, &(struct tl_log_fields){.error = &err}, "not ready");
    tl_reply_free(reply);
}

static void serve(struct tl_shared *shared, const char *role, struct tl_admin_server *server,
                  const struct tl_signals *signals, struct tl_store *store)
{
    enum tl_signal signal;
    while ((signal = tl_signals_next(signals)) != TL_SIGNAL_STOP) {
        if (signal == TL_SIGNAL_RELOAD) {
            reload(shared, role, server);
            continue;
        }
        if (store != NULL)
            look_at_store(store, shared->board.head);
        tl_signals_wait(signals, store != NULL ? LOOK_MS : INT64_MAX);
    }
}

int tl_admin_process_run(struct tl_shared *shared, const char *role)
{
    const struct tl_config *config = shared->config;
    const struct tl_redis_settings redis =
        tl_redis_settings_of(config, tl_admin_backend_redis_url(config));
    const struct tl_admin_server_settings settings = {.config = config,
                                                      .brand = shared->brand,
                                                      .events = &shared->events,
                                                      .source = tl_board_source(&shared->board),
                                                      .limiter = shared->limiter};
    bool alone = shared->board.n == 0;
    struct tl_error err = {0};
    struct tl_admin_server *server = NULL;
    struct tl_signals signals;
    tl_secrets_free(&shared->secrets); /* those of visitors */
    struct tl_store *store = alone ? tl_store_new(&redis, &err) : NULL;
    if ((alone && store == NULL) || !tl_signals_open(&signals, &err) ||
        (server = tl_admin_server_start(&settings, &err)) == NULL) {
        tl_log(TL_LOG_FATAL, &(struct tl_log_fields){.error = &err},
               "cannot start the admin listener");
        tl_store_free(&store);
        return 1;
    }
    atomic_store(&shared->board.head->admin_started, true);
    serve(shared, role, server, &signals, store);
    tl_admin_server_stop(&server);
    tl_signals_close(&signals);
    tl_store_free(&store);
    return 0;
}
