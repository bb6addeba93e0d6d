#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/config/queue_settings.h"
#include "common/store/queue.h"
#include "common/store/reply.h"
#include "common/store/script.h"
#include "common/wire/names.h"

#include "generated/store_scripts.h"

/* Events that a change of settings keeps in the stream; the programs trim to their own setting. */
#define EVENTS_KEPT "20000"
#define VALUE_MAX   1100

static void append_settings(const struct tl_queue_settings *settings, struct tl_args *args)
{
    char value[VALUE_MAX];
    const char *name;
    for (size_t i = 0; tl_queue_settings_get(settings, i, &name, value, sizeof(value)); i++)
        tl_args_strs(args, name, value, NULL);
}

bool tl_queue_ensure(struct tl_redis *redis, const char *key_prefix, const char *name,
                     const struct tl_queue_settings *settings, bool *created, struct tl_error *err)
{
    struct tl_keys keys;
    tl_keys_init(&keys, key_prefix, name);
    struct tl_args args = {0};
    append_settings(settings, &args);
    struct tl_reply *reply = tl_script_run(redis, tl_script_ensure, &keys, &args, err);
    bool ok = reply != NULL;
    if (ok && created != NULL)
        *created = tl_reply_integer(reply) == 1;
    tl_reply_free(reply);
    if (ok) {
        /* tl:queues is in another slot than the queue's keys, so this is a step of its own. If it
         * fails, the next ensure repeats it. */
        char queues[TL_KEY_MAX];
        tl_keys_queues(key_prefix, queues);
        tl_args_reset(&args);
        tl_args_strs(&args, "SADD", queues, name, NULL);
        ok = tl_redis_do(redis, &args, err);
    }
    tl_args_free(&args);
    return ok || tl_error_prefix(err, "creating queue %s", name);
}

bool tl_queue_ensure_all(struct tl_redis *redis, const struct tl_config *config,
                         struct tl_error *err)
{
    for (size_t i = 0; i < config->n_queues; i++)
        if (!tl_queue_ensure(redis, config->redis.key_prefix, config->queues[i].name,
                             &config->queues[i].settings, NULL, err))
            return false;
    return true;
}

/* Reads the reply to HGETALL of the settings. False when there are none. */
static bool read_settings(const struct tl_reply *reply, struct tl_queue_settings *settings)
{
    size_t n = tl_reply_count(reply);
    tl_queue_settings_defaults(settings);
    struct tl_queue_settings known = *settings;
    /* `lanes` first: default_lane is named after one of them. */
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i + 1 < n; i += 2) {
            const char *name = tl_reply_string(tl_reply_at(reply, i), NULL);
            const char *value = tl_reply_string(tl_reply_at(reply, i + 1), NULL);
            if ((strcmp(name, "lanes") == 0) != (pass == 0))
                continue;
            /* An unknown field of a newer version is skipped; an invalid value keeps the default.
             */
            if (tl_queue_settings_set(settings, name, value, NULL))
                known = *settings;
            else
                *settings = known;
        }
    return n > 0;
}

static bool fail_missing(const struct tl_keys *keys, struct tl_error *err)
{
    return tl_error_set(err, TL_ERR_NOQUEUE, "queue %s does not exist", keys->queue);
}

bool tl_queue_load(struct tl_redis *redis, const struct tl_keys *keys,
                   struct tl_queue_settings *settings, struct tl_error *err)
{
    struct tl_args args = {0};
    tl_args_strs(&args, "HGETALL", keys->names[TL_KEY_CONFIG], NULL);
    struct tl_reply *reply = tl_redis_call(redis, &args, err);
    tl_args_free(&args);
    if (reply == NULL)
        return false;
    bool ok = read_settings(reply, settings) || fail_missing(keys, err);
    tl_reply_free(reply);
    return ok;
}

bool tl_queue_info_send(struct tl_redis *redis, const struct tl_keys *keys, struct tl_error *err)
{
    struct tl_args args = {0};
    tl_args_strs(&args, "HGET", keys->names[TL_KEY_STATE], "generation", NULL);
    bool ok = tl_redis_append(redis, &args, err);
    if (ok) {
        tl_args_reset(&args);
        tl_args_strs(&args, "HGETALL", keys->names[TL_KEY_CONFIG], NULL);
        ok = tl_redis_append(redis, &args, err);
    }
    tl_args_free(&args);
    return ok;
}

bool tl_queue_info_receive(struct tl_redis *redis, const struct tl_keys *keys,
                           struct tl_queue_info *info, struct tl_error *err)
{
    struct tl_reply *generation = tl_redis_next(redis, err);
    struct tl_reply *settings = tl_redis_next(redis, generation != NULL ? err : NULL);
    bool ok = generation != NULL && settings != NULL;
    if (ok) {
        info->generation = (uint64_t)tl_reply_integer(generation);
        ok = (read_settings(settings, &info->settings) && info->generation != 0) ||
             fail_missing(keys, err);
    }
    tl_reply_free(generation);
    tl_reply_free(settings);
    return ok;
}

bool tl_queue_configure(struct tl_redis *redis, const struct tl_keys *keys, const char *name,
                        const char *value, struct tl_error *err)
{
    struct tl_queue_settings settings;
    if (!tl_queue_load(redis, keys, &settings, err) ||
        !tl_queue_settings_set(&settings, name, value, err) ||
        !tl_queue_settings_validate(&settings, err))
        return false;
    struct tl_args args = {0};
    tl_args_strs(&args, EVENTS_KEPT, "settings", NULL);
    append_settings(&settings, &args);
    struct tl_reply *reply = tl_script_run(redis, tl_script_configure, keys, &args, err);
    bool ok = reply != NULL;
    tl_reply_free(reply);
    tl_args_free(&args);
    return ok;
}

bool tl_queue_notice(struct tl_redis *redis, const struct tl_keys *keys, const char *text,
                     struct tl_error *err)
{
    struct tl_args args = {0};
    if (strlen(text) > TL_NOTICE_MAX)
        return tl_error_set(err, TL_ERR_INVALID, "a notice of %zu bytes; the limit is %d",
                            strlen(text), TL_NOTICE_MAX);
    tl_args_strs(&args, EVENTS_KEPT, "notice", text, NULL);
    struct tl_reply *reply = tl_script_run(redis, tl_script_configure, keys, &args, err);
    bool ok = reply != NULL;
    tl_reply_free(reply);
    tl_args_free(&args);
    return ok;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(a, b);
}

bool tl_queue_find_name(char (*names)[TL_QUEUE_NAME_MAX + 1], size_t n, const char *name,
                        size_t *at)
{
    const char(*found)[TL_QUEUE_NAME_MAX + 1] =
        bsearch(name, names, n, sizeof(*names), compare_names);
    if (found != NULL && at != NULL)
        *at = (size_t)(found - (const char(*)[TL_QUEUE_NAME_MAX + 1]) names);
    return found != NULL;
}

bool tl_queue_list(struct tl_redis *redis, const char *key_prefix,
                   char (**names)[TL_QUEUE_NAME_MAX + 1], size_t *n, struct tl_error *err)
{
    char queues[TL_KEY_MAX];
    tl_keys_queues(key_prefix, queues);
    struct tl_args args = {0};
    tl_args_strs(&args, "SMEMBERS", queues, NULL);
    struct tl_reply *reply = tl_redis_call(redis, &args, err);
    tl_args_free(&args);
    if (reply == NULL)
        return false;
    size_t count = tl_reply_count(reply);
    *n = 0;
    *names = calloc(count > 0 ? count : 1, sizeof(**names));
    if (*names == NULL) {
        tl_reply_free(reply);
        return tl_error_set(err, TL_ERR_NOMEM, "no memory for %zu queue names", count);
    }
    for (size_t i = 0; i < count; i++) {
        size_t length;
        const char *name = tl_reply_string(tl_reply_at(reply, i), &length);
        if (tl_queue_name_valid(name, length))
            memcpy((*names)[(*n)++], name, length);
    }
    tl_reply_free(reply);
    qsort(*names, *n, sizeof(**names), compare_names);
    return true;
}

bool tl_queue_numbers(struct tl_redis *redis, const struct tl_keys *keys,
                      struct tl_queue_numbers *numbers, struct tl_error *err)
{
    struct tl_args args = {0};
    tl_args_strs(&args, "HMGET", keys->names[TL_KEY_STATE], "generation", "seq", "event", "waiting",
                 "active", "joined", "admitted", "completed", "expired", "left", "unclaimed",
                 "absent", NULL);
    struct tl_reply *reply = tl_redis_call(redis, &args, err);
    tl_args_free(&args);
    if (reply == NULL)
        return false;
    uint64_t *const fields[] = {&numbers->generation, &numbers->seq,       &numbers->event,
                                &numbers->waiting,    &numbers->active,    &numbers->joined,
                                &numbers->admitted,   &numbers->completed, &numbers->expired,
                                &numbers->left,       &numbers->unclaimed, &numbers->absent};
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
        *fields[i] = (uint64_t)tl_reply_integer(tl_reply_at(reply, i));
    tl_reply_free(reply);
    if (numbers->generation == 0)
        return fail_missing(keys, err);
    return true;
}
