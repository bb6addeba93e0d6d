/* SPDX-License-Identifier: Apache-2.0 */
#include "common/config/document.h"
#include "common/store/durable.h"
#include "common/store/library.h"
#include "common/store/memory.h"

#include "ctl/calls/calls.h"

#include "worker/page/look.h"

/* Is the store fit for this release? False with err, a sentence. */
static bool check_store(struct tl_ctl_session *session, struct tl_error *err)
{
    struct tl_redis *redis = tl_ctl_session_redis(session, NULL, err);
    struct tl_store_memory memory;
    if (redis == NULL || !tl_library_load(redis, err) || !tl_store_memory_read(redis, &memory, err))
        return false;
    if (tl_store_memory_evicts(&memory))
        return tl_error_set(err, TL_ERR_INVALID,
                            "the store deletes keys of queues when it is full (maxmemory-policy "
                            "%s): set it to noeviction",
                            memory.policy);
    struct tl_durable durable;
    tl_durable_init(&durable, session->config->redis.durability, session->config->redis.key_prefix);
    return tl_durable_supported(&durable, redis, err);
}

static int connect_to_store(const struct tl_ctl_options *options)
{
    struct tl_ctl_session session;
    struct tl_error err = {0};
    if (!tl_ctl_session_open(&session, options, &err))
        return tl_ctl_fail(TL_EXIT_FAILED, &err);
    bool fit = check_store(&session, &err);
    tl_ctl_session_close(&session);
    if (!fit)
        return tl_ctl_fail(TL_EXIT_PROBLEM, &err);
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
