/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "common/config/mode.h"
#include "common/config/queue_settings.h"
#include "common/store/library.h"
#include "common/store/queue.h"
#include "common/store/reply.h"
#include "common/wire/notice_text.h"

enum { CONFIGURE_ATTEMPTS = 100 }; /* one more for each change of another program that wins */

void tl_queue_append_settings(const struct tl_queue_settings *settings, struct tl_args *args)
{
    char value[TL_QUEUE_VALUE_MAX];
    const char *name;
    for (size_t i = 0; tl_queue_settings_get(settings, i, &name, value, sizeof(value)); i++)
        tl_args_strs(args, name, value, NULL);
    if (settings->changed_us > 0) {
        tl_args_str(args, TL_QUEUE_CHANGED);
        tl_args_int(args, settings->changed_us);
    }
}

struct tl_queue_site tl_queue_site(struct tl_store *store, const char *queue)
{
    return (struct tl_queue_site){.redis = tl_store_of(store, queue),
                                  .list = tl_store_common(store)};
}

static bool ensure(struct tl_queue_site site, const char *key_prefix, const char *name,
                   const struct tl_queue_settings *settings, const struct tl_actor *actor,
                   enum tl_creation why, bool *created, struct tl_error *err)
{
    struct tl_keys keys;
    char queues[TL_KEY_MAX];
    tl_keys_init(&keys, key_prefix, name);
    struct tl_args args = {0};
    tl_call_begin(&args, TL_FN_ENSURE, &keys);
    tl_args_uint(&args, why);
    tl_args_str(&args, TL_EVENTS_KEPT);
    tl_queue_append_settings(settings, &args);
    tl_actor_append(actor, &args);
    struct tl_reply *reply = tl_call_once(site.redis, &args, err);
    bool ok = reply != NULL;
    if (ok && created != NULL)
        *created = tl_reply_integer(reply) == 1;
    tl_reply_free(reply);
    if (ok) {
        /* If this fails, the next ensure repeats it. A function, because a plain SADD is refused at
         * the memory limit. */
        tl_call_begin_on(&args, TL_FN_LIST_QUEUE, 1);
        tl_args_strs(&args, tl_key_common(key_prefix, TL_COMMON_QUEUES, queues), name, NULL);
        ok = tl_call_do(site.list, &args, err);
    }
    return ok || tl_error_prefix(err, "creating queue %s", name);
}

bool tl_queue_ensure(struct tl_queue_site site, const char *key_prefix, const char *name,
                     const struct tl_queue_settings *settings, const struct tl_actor *actor,
                     bool *created, struct tl_error *err)
{
    return ensure(site, key_prefix, name, settings, actor, TL_CREATION_OF_FILE, created, err);
}

bool tl_queue_create(struct tl_queue_site site, const char *key_prefix, const char *name,
                     const struct tl_queue_settings *settings, const struct tl_actor *actor,
                     bool *created, struct tl_error *err)
{
    return ensure(site, key_prefix, name, settings, actor, TL_CREATION_BY_HAND, created, err);
}

bool tl_queue_bring_back(struct tl_queue_site site, const char *key_prefix, const char *name,
                         const struct tl_queue_settings *settings, const struct tl_actor *actor,
                         bool *created, struct tl_error *err)
{
    return ensure(site, key_prefix, name, settings, actor, TL_CREATION_IN_FORCE, created, err);
}

/* Settings that no queue is without. The functions refuse to work when one of them is missing. */
static const char *const needed[] = {"policy",      "capacity",  "session_ttl",
                                     "session_max", "claim_ttl", "waiting_ttl"};
enum { NEEDED = sizeof(needed) / sizeof(needed[0]) };

static bool is_needed(const char *name)
{
    for (size_t i = 0; i < NEEDED; i++)
        if (strcmp(needed[i], name) == 0)
            return true;
    return false;
}

/* Reads the reply to HGETALL of the settings. Returns how many of those that are needed it has. */
static size_t read_settings(const struct tl_reply *reply, struct tl_queue_settings *settings)
{
    size_t found = 0;
    const char *lanes = tl_reply_string(tl_reply_of(reply, "lanes"), NULL);
    tl_queue_settings_defaults(settings);
    /* These first: default_lane is named after one of them. */
    (void)tl_queue_settings_set(settings, "lanes", lanes, TL_FORM_STORE, NULL);
    for (size_t i = 0; i + 1 < tl_reply_count(reply); i += 2) {
        const char *name = tl_reply_text(reply, i);
        const char *value = tl_reply_text(reply, i + 1);
        /* An unknown field of a newer version is skipped; an invalid value keeps the default. */
        if (strcmp(name, TL_QUEUE_CHANGED) == 0)
            settings->changed_us = tl_reply_signed(reply, i + 1);
        else if (tl_queue_settings_set(settings, name, value, TL_FORM_STORE, NULL))
            found += is_needed(name) ? 1 : 0;
    }
    return found;
}

bool tl_queue_settings_read(const struct tl_reply *reply, struct tl_queue_settings *settings)
{
    return read_settings(reply, settings) == NEEDED;
}

void tl_queue_settings_now(struct tl_queue_settings *settings, const struct tl_state *state)
{
    settings->now =
        (struct tl_capacity_now){.capacity = state->capacity_now,
                                 .stale = settings->capacity_min > 0 && !state->is_reported};
}

enum { INFO = TL_STATE_BASE_SEQ | TL_STATE_CAPACITY };

bool tl_queue_info_send(struct tl_redis *redis, const struct tl_keys *keys, struct tl_error *err)
{
    struct tl_args args = {0};
    tl_args_strs(&args, "HMGET", keys->names[TL_KEY_STATE], NULL);
    tl_state_append(&args, INFO);
    bool ok = tl_redis_append(redis, &args, err);
    if (ok) {
        tl_args_reset(&args);
        tl_args_strs(&args, "HGETALL", keys->names[TL_KEY_CONFIG], NULL);
        ok = tl_redis_append(redis, &args, err);
    }
    tl_args_free(&args);
    return ok;
}

/* Receives what was sent. *numbers is false when the state cannot be read. */
static bool receive_info(struct tl_redis *redis, const struct tl_keys *keys,
                         struct tl_queue_info *info, bool *numbers, struct tl_error *err)
{
    struct tl_state state;
    struct tl_reply *values = tl_redis_next(redis, err);
    struct tl_reply *settings = tl_redis_next(redis, values != NULL ? err : NULL);
    *numbers = values != NULL;
    tl_state_parse(values, INFO, &state);
    info->generation = state.generation;
    info->base_seq = state.base_seq;
    bool ok = settings != NULL && (tl_queue_settings_read(settings, &info->settings) ||
                                   tl_keys_fail_missing(keys, err));
    if (ok)
        tl_queue_settings_now(&info->settings, &state);
    tl_reply_free(values);
    tl_reply_free(settings);
    return ok;
}

bool tl_queue_info_receive(struct tl_redis *redis, const struct tl_keys *keys,
                           struct tl_queue_info *info, struct tl_error *err)
{
    bool numbers;
    return receive_info(redis, keys, info, &numbers, err) && numbers &&
           (info->generation != 0 || tl_keys_fail_missing(keys, err));
}

bool tl_queue_load(struct tl_redis *redis, const struct tl_keys *keys,
                   struct tl_queue_settings *settings, struct tl_error *err)
{
    bool numbers;
    struct tl_queue_info info;
    struct tl_error problem = {0};
    bool ok = tl_queue_info_send(redis, keys, &problem) &&
              receive_info(redis, keys, &info, &numbers, &problem);
    if (ok)
        *settings = info.settings;
    else if (err != NULL)
        *err = problem;
    return ok;
}

static bool is_named(const struct tl_queue_changes *changes, const char *name)
{
    for (size_t i = 0; i < changes->n; i++)
        if (strcmp(changes->list[i].name, name) == 0)
            return true;
    return false;
}

/* Is the i-th setting one of the wanted ones? */
static bool is_wanted(const struct tl_queue_changes *changes, size_t i)
{
    return changes->places != NULL && changes->places[i].line > 0;
}

/* Makes the settings what the changes say. */
static bool apply_changes(const struct tl_queue_changes *changes,
                          struct tl_queue_settings *settings, struct tl_error *err)
{
    const char *name;
    char value[TL_QUEUE_VALUE_MAX];
    bool ok = true;
    for (size_t i = 0; ok && i < changes->n; i++)
        ok = tl_queue_settings_set(settings, changes->list[i].name, changes->list[i].value,
                                   TL_FORM_FILE, err);
    for (size_t i = 0; ok && changes->places != NULL &&
                       tl_queue_settings_get(changes->wanted, i, &name, value, sizeof(value));
         i++)
        ok = !is_wanted(changes, i) ||
             tl_queue_settings_set(settings, name, value, TL_FORM_STORE, err);
    return ok;
}

/* All settings as they were read; then those to change, and what changed with them, as `lanes`
 * changes default_lane. */
static void append_changes(const struct tl_reply *read, const struct tl_queue_settings *before,
                           const struct tl_queue_settings *after,
                           const struct tl_queue_changes *changes, struct tl_args *args)
{
    const char *each;
    char old_value[TL_QUEUE_VALUE_MAX];
    char value[TL_QUEUE_VALUE_MAX];
    tl_args_uint(args, tl_reply_count(read));
    for (size_t i = 0; i < tl_reply_count(read); i++) {
        size_t length;
        const char *text = tl_reply_string(tl_reply_at(read, i), &length);
        tl_args_bin(args, text, length);
    }
    for (size_t i = 0; tl_queue_settings_get(after, i, &each, value, sizeof(value)); i++) {
        tl_queue_settings_get(before, i, &each, old_value, sizeof(old_value));
        if (is_named(changes, each) || is_wanted(changes, i) || strcmp(old_value, value) != 0)
            tl_args_strs(args, each, value, NULL);
    }
}

void tl_changes_made_free(struct tl_changes_made *made)
{
    free(made->before);
    free(made->after);
    *made = (struct tl_changes_made){0};
}

/* Copies both texts of { 1, before, after }; made NULL: nothing to do. */
static bool copy_made(const struct tl_reply *reply, struct tl_changes_made *made,
                      struct tl_error *err)
{
    if (made == NULL)
        return true;
    *made = (struct tl_changes_made){
        .before = strdup(tl_reply_text(reply, 1)),
        .after = strdup(tl_reply_text(reply, 2)),
    };
    if (made->before != NULL && made->after != NULL)
        return true;
    tl_changes_made_free(made);
    return tl_error_set(err, TL_ERR_NOMEM,
                        "the settings were changed, but there is no memory to "
                        "tell what they were before");
}

/* One attempt; *done is false when another change came between. */
static bool try_configure(struct tl_redis *redis, const struct tl_keys *keys,
                          const struct tl_queue_changes *changes, const struct tl_actor *actor,
                          struct tl_changes_made *made, bool *done, struct tl_error *err)
{
    struct tl_queue_settings before = {0};
    struct tl_reply *read = tl_ask(redis, err, "HGETALL", keys->names[TL_KEY_CONFIG], NULL);
    bool ok = read != NULL && (read_settings(read, &before) > 0 || tl_keys_fail_missing(keys, err));
    ok = ok && (changes->check == NULL || changes->check(changes->context, &before, err));
    struct tl_queue_settings after = before;
    ok = ok && apply_changes(changes, &after, err) && tl_mode_change(&before, &after, err) &&
         tl_queue_settings_validate(&after, err);
    if (ok) {
        struct tl_args args = {0};
        tl_call_begin(&args, TL_FN_CONFIGURE, keys);
        tl_args_strs(&args, TL_EVENTS_KEPT, "settings", NULL);
        append_changes(read, &before, &after, changes, &args);
        tl_actor_append(actor, &args);
        struct tl_reply *reply = tl_call_once(redis, &args, err);
        *done = tl_reply_signed(reply, 0) == 1;
        ok = reply != NULL && (!*done || copy_made(reply, made, err));
        tl_reply_free(reply);
    }
    tl_reply_free(read);
    return ok;
}

bool tl_queue_configure(struct tl_redis *redis, const struct tl_keys *keys,
                        const struct tl_queue_changes *changes, const struct tl_actor *actor,
                        struct tl_changes_made *made, struct tl_error *err)
{
    bool done = false;
    for (int i = 0; i < CONFIGURE_ATTEMPTS && !done; i++) {
        if (!try_configure(redis, keys, changes, actor, made, &done, err))
            return false;
    }
    return done || tl_error_set(err, TL_ERR_STORE,
                                "the settings of queue %s are being changed all the time; nothing "
                                "was changed, try again",
                                keys->queue);
}

bool tl_queue_notice(struct tl_redis *redis, const struct tl_keys *keys, const char *text,
                     const struct tl_actor *actor, struct tl_error *err)
{
    struct tl_args args = {0};
    if (!tl_notice_check(text, strlen(text), err))
        return false;
    tl_call_begin(&args, TL_FN_CONFIGURE, keys);
    tl_args_strs(&args, TL_EVENTS_KEPT, "notice", text, NULL);
    tl_actor_append(actor, &args);
    return tl_call_do(redis, &args, err);
}

bool tl_recovery_end_in(struct tl_redis *redis, const struct tl_keys *keys, int64_t ms,
                        const struct tl_actor *actor, struct tl_error *err)
{
    struct tl_args args = {0};
    tl_call_begin(&args, TL_FN_RECOVER, keys);
    tl_args_str(&args, TL_EVENTS_KEPT);
    tl_args_int(&args, ms);
    tl_actor_append(actor, &args);
    return tl_call_do(redis, &args, err);
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
    struct tl_reply *reply =
        tl_ask(redis, err, "SMEMBERS", tl_key_common(key_prefix, TL_COMMON_QUEUES, queues), NULL);
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
