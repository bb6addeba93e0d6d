/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/store/queue.h"
#include "common/store/reply.h"
#include "common/store/store.h"
#include "worker/process/process.h"

/* The file with the keys of tickets or passes that does not exist; NULL when both do. */
static const char *missing_file(const struct tl_config *config)
{
    const char *const paths[] = {config->secrets.ticket_keys, config->secrets.pass_keys};
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        if (access(paths[i], F_OK) != 0 && errno == ENOENT)
            return paths[i];
    }
    return NULL;
}

/* Writes the name of a queue with visitors; "" when there is none. */
static bool find_visitors(struct tl_store *store, const struct tl_config *config,
                          char queue[TL_QUEUE_NAME_MAX + 1], struct tl_error *err)
{
    char(*names)[TL_QUEUE_NAME_MAX + 1] = NULL;
    size_t n = 0;
    queue[0] = '\0';
    bool ok = tl_store_connect(store, err) &&
              tl_queue_list(tl_store_common(store), config->redis.key_prefix, &names, &n, err);
    for (size_t i = 0; ok && queue[0] == '\0' && i < n + config->n_queues; i++) {
        const char *name = i < n ? names[i] : config->queues[i - n].name;
        struct tl_keys keys;
        tl_keys_init(&keys, config->redis.key_prefix, name);
        struct tl_reply *reply =
            tl_ask(tl_store_of(store, name), err, "EXISTS", keys.names[TL_KEY_WAITING],
                   keys.names[TL_KEY_ACTIVE], NULL);
        ok = reply != NULL;
        if (ok && tl_reply_integer(reply) > 0)
            snprintf(queue, TL_QUEUE_NAME_MAX + 1, "%s", name);
        tl_reply_free(reply);
    }
    free(names);
    return ok;
}

enum tl_key_files tl_key_files_look(const struct tl_config *config, struct tl_error *err)
{
    const struct tl_redis_settings redis = tl_redis_settings_of(config, NULL);
    char queue[TL_QUEUE_NAME_MAX + 1] = "";
    if (missing_file(config) == NULL)
        return TL_KEY_FILES_FINE;
    struct tl_store *store = tl_store_new(&redis, err);
    bool answered = store != NULL && find_visitors(store, config, queue, err);
    tl_store_free(&store);
    /* Another worker may have made it meanwhile: the visitors may be that one's. */
    const char *path = missing_file(config);
    if (path == NULL || (answered && queue[0] == '\0'))
        return TL_KEY_FILES_FINE;
    if (!answered) {
        tl_error_prefix(err,
                        "%s does not exist; it is made only while no visitor is in a queue, "
                        "and the store does not answer",
                        path);
        return TL_KEY_FILES_UNKNOWN;
    }
    tl_error_set(err, TL_ERR_INVALID,
                 "%s does not exist, and visitors in queue %s hold what its keys signed: restore "
                 "it from a backup or from another worker, or correct the path (a relative one "
                 "starts at the folder of the configuration file)",
                 path, queue);
    return TL_KEY_FILES_LOST;
}
