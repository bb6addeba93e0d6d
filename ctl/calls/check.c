/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "common/config/document.h"
#include "common/store/durable.h"
#include "common/store/library.h"
#include "common/store/memory.h"
#include "common/store/reply.h"

#include "ctl/calls/calls.h"

#include "worker/page/look.h"

/* Is this server fit for this release? False with err, a sentence. */
static bool check_server(const struct tl_ctl_session *session, struct tl_redis *redis,
                         struct tl_error *err)
{
    const struct tl_config *config = session->config;
    struct tl_store_memory memory;
    struct tl_durable durable;
    if (!tl_library_load(redis, err) || !tl_store_memory_read(redis, &memory, err))
        return false;
    if (tl_store_memory_evicts(&memory))
        return tl_error_set(err, TL_ERR_INVALID,
                            "the store deletes keys of queues when it is full (maxmemory-policy "
                            "%s): set it to noeviction",
                            memory.policy);
    tl_durable_init(&durable, config->redis.durability, config->redis.key_prefix);
    return tl_durable_supported(&durable, redis, err);
}

/* Prints what a node of a cluster says of itself; that it answers shows that it knows the user. */
static bool describe_node(struct tl_redis *redis, struct tl_error *err)
{
    struct tl_reply *info = tl_ask(redis, err, "INFO", "server", NULL);
    struct tl_reply *role = info != NULL ? tl_ask(redis, err, "ROLE", NULL) : NULL;
    const char *text = tl_reply_string(info, NULL);
    const char *valkey = tl_info_field(text, "valkey_version");
    const char *version = valkey[0] != '\0' ? valkey : tl_info_field(text, "redis_version");
    size_t replicas = tl_reply_count(tl_reply_at(role, 2));
    if (role != NULL)
        printf("%s: %s %.*s, %s with %zu %s\n", tl_redis_address(redis),
               valkey[0] != '\0' ? "Valkey" : "Redis", (int)strcspn(version, "\r\n"), version,
               tl_reply_text(role, 0), replicas, replicas == 1 ? "replica" : "replicas");
    tl_reply_free(info);
    tl_reply_free(role);
    return role != NULL;
}

/* Are all nodes fit? False with err, a sentence that names the last that is not; of the others it
 * is printed. */
static bool check_store(struct tl_ctl_session *session, struct tl_error *err)
{
    struct tl_store *store = session->store;
    if (!tl_store_connect(store, err))
        return false;
    bool ok = true;
    for (size_t i = 0; i < tl_store_nodes(store); i++) {
        struct tl_redis *redis = tl_store_node(store, i);
        const bool is_node = tl_redis_is_node(redis);
        struct tl_error problem = {0};
        if ((!is_node || describe_node(redis, &problem)) && check_server(session, redis, &problem))
            continue;
        if (is_node)
            tl_error_prefix(&problem, "the node at %s", tl_redis_address(redis));
        if (!ok)
            (void)tl_ctl_fail(TL_EXIT_PROBLEM, err);
        *err = problem;
        ok = false;
    }
    return ok;
}

static int connect_to_store(const struct tl_ctl_options *options)
{
    struct tl_ctl_session session;
    struct tl_error err = {0};
    if (!tl_ctl_session_open(&session, options, &err))
        return tl_ctl_fail(TL_EXIT_FAILED, &err);
    bool fit = check_store(&session, &err);
    size_t n = tl_store_nodes(session.store);
    bool is_cluster = tl_redis_is_node(tl_store_common(session.store));
    tl_ctl_session_close(&session);
    if (!fit)
        return tl_ctl_fail(TL_EXIT_PROBLEM, &err);
    if (is_cluster)
        printf("the store: ok; a cluster of %zu masters, each of which keeps redis.durability and "
               "has the functions of this release (" TL_LIBRARY ")\n",
               n);
    else
        printf("the store: ok; it has the functions of this release (" TL_LIBRARY ")\n");
    return TL_EXIT_OK;
}

int tl_command_check(const struct tl_ctl_options *options)
{
    struct tl_error err = {0};
    struct tl_mistakes mistakes = {0};
    const struct tl_config *config = tl_config_load_all(options->config, &mistakes);
    if (config == NULL) {
        tl_mistakes_write(&mistakes, "tellerline: ", stderr);
        return tl_ctl_file_status(&mistakes.list[0].err);
    }
    struct tl_languages *languages = tl_languages_new(config->brand.languages, &err);
    struct tl_event_looks events = {0};
    bool good = languages != NULL && tl_page_read(config, languages, NULL, &events, &err);
    tl_event_looks_free(&events);
    tl_languages_free(&languages);
    if (!good) {
        tl_config_free(&config);
        return tl_ctl_fail(tl_ctl_file_status(&err), &err);
    }
    printf("%s: ok; %zu %s\n",
           options->config != NULL ? options->config : "defaults and environment", config->n_queues,
           config->n_queues == 1 ? "queue" : "queues");
    tl_config_free(&config);
    return options->connect ? connect_to_store(options) : TL_EXIT_OK;
}

int tl_command_config_doc(const struct tl_ctl_options *options)
{
    (void)options;
    tl_config_document(stdout);
    tl_config_reference(stdout);
    return TL_EXIT_OK;
}
