/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "common/config/queue_settings.h"
#include "common/control/call.h"
#include "common/control/settings_json.h"
#include "common/store/troubles.h"

/* ---- settings: their ETag, their change ---- */

enum { DIGEST_BYTES = 16 };

/* The ETag of a queue's settings: another one for any other settings, and for another generation.
 */
static void etag_of(uint64_t generation, const struct tl_queue_settings *settings,
                    char etag[TL_CONTROL_ETAG_MAX])
{
    unsigned char digest[DIGEST_BYTES];
    char value[TL_QUEUE_VALUE_MAX];
    char hex[2 * DIGEST_BYTES + 1];
    const char *name;
    crypto_generichash_state hash;
    crypto_generichash_init(&hash, NULL, 0, sizeof(digest));
    crypto_generichash_update(&hash, (const unsigned char *)&generation, sizeof(generation));
    for (size_t i = 0; tl_queue_settings_get(settings, i, &name, value, sizeof(value)); i++) {
        /* With the terminating zeros, so that no two lists of texts run into each other. */
        crypto_generichash_update(&hash, (const unsigned char *)name, strlen(name) + 1);
        crypto_generichash_update(&hash, (const unsigned char *)value, strlen(value) + 1);
    }
    crypto_generichash_final(&hash, digest, sizeof(digest));
    sodium_bin2hex(hex, sizeof(hex), digest, sizeof(digest));
    snprintf(etag, TL_CONTROL_ETAG_MAX, "\"%s\"", hex);
}

/* Does If-Match (a list, or "*") name this ETag? NULL: there is no condition. */
static bool matches(const char *if_match, const char *etag)
{
    return if_match == NULL || strcmp(if_match, "*") == 0 ||
           tl_call_has_word(if_match, ", \t", etag);
}

/* What If-Match is compared with. */
struct condition {
    const char *if_match;
    uint64_t generation;
    bool failed;
};

static bool check(void *context, const struct tl_queue_settings *before, struct tl_error *err)
{
    struct condition *condition = context;
    char etag[TL_CONTROL_ETAG_MAX];
    etag_of(condition->generation, before, etag);
    condition->failed = !matches(condition->if_match, etag);
    return !condition->failed || tl_error_set(err, TL_ERR_INVALID,
                                              "the settings are no longer those that If-Match "
                                              "names: read them again");
}

/* The call's queue as it is now, and the ETag of its settings. made: what changed; or NULL. */
static json_t *describe(struct tl_control_call *call, const struct tl_changes_made *made)
{
    struct tl_queue_info info;
    if (!tl_queue_info_send(call->redis, &call->keys, &call->err) ||
        !tl_queue_info_receive(call->redis, &call->keys, &info, &call->err))
        return NULL;
    json_t *body = json_pack("{s:s, s:I, s:o, s:o}", "name", call->keys.queue, "generation",
                             (json_int_t)info.generation, "created_at",
                             tl_call_time((int64_t)(info.generation / 1000)), "settings",
                             tl_settings_to_json(&info.settings));
    bool has_changed = made != NULL && made->before != NULL;
    tl_object_set(&body, "changed",
                  has_changed
                      ? json_pack("{s:o, s:o}", "before", tl_settings_record_to_json(made->before),
                                  "after", tl_settings_record_to_json(made->after))
                      : json_null());
    etag_of(info.generation, &info.settings, call->answer->etag);
    return body;
}

json_t *tl_resource_change(struct tl_control_call *call, const struct tl_queue_changes *changes)
{
    struct tl_state state;
    struct condition condition = {.if_match = call->request->if_match};
    struct tl_queue_changes checked = *changes;
    struct tl_changes_made made = {0};
    json_t *body = NULL;
    if (condition.if_match != NULL) {
        if (!tl_state_read(call->redis, &call->keys, 0, &state, &call->err))
            return NULL;
        condition.generation = state.generation;
        checked.check = check;
        checked.context = &condition;
    }
    if (tl_queue_configure(call->redis, &call->keys, &checked, call->request->actor, &made,
                           &call->err))
        body = describe(call, &made);
    else if (condition.failed)
        tl_call_refuse(call, TL_REFUSAL_CHANGED, "%s", call->err.text);
    tl_changes_made_free(&made);
    return body;
}

enum { TROUBLE_MAX = 320 };

/* ---- the list ---- */

/* Does the error concern the node of a cluster that has the queue, and no other? */
static bool is_of_node(const struct tl_control_call *call, const char *queue,
                       const struct tl_error *err)
{
    return tl_redis_is_node(tl_store_of(call->control->store, queue)) && tl_error_is_of_store(err);
}

static json_t *row_of_away(const struct tl_control_call *call, const char *queue,
                           struct tl_error *err)
{
    const struct tl_redis *redis = tl_store_of(call->control->store, queue);
    json_t *row = json_pack("{s:s, s:o, s:b, s:s}", "queue", queue, "node", tl_call_node(redis),
                            "away", true, "trouble", err->text);
    if (row == NULL)
        tl_error_set(err, TL_ERR_NOMEM, "no memory for queue %s", queue);
    return row;
}

/* The numbers of a queue of the list, with its trouble where its data is damaged; then maybe with
 * nothing else. NULL with TL_ERR_NOQUEUE: it is being deleted, or created. */
static json_t *row_of(struct tl_control_call *call, const char *queue, struct tl_error *err)
{
    struct tl_keys keys;
    char trouble[TROUBLE_MAX];
    struct tl_error problem = {0};
    struct tl_redis *redis = tl_control_redis(call->control, queue, err);
    if (redis == NULL || !tl_call_keys(call->control, queue, &keys, err) ||
        !tl_queue_examine(redis, &keys, trouble, err))
        return is_of_node(call, queue, err) ? row_of_away(call, queue, err) : NULL;
    json_t *stats = tl_control_stats_of(call->control, queue, &problem);
    bool is_of_queue = problem.kind != TL_ERR_NOQUEUE && problem.kind != TL_ERR_CONNECT &&
                       problem.kind != TL_ERR_TIMEOUT;
    if (stats == NULL && !is_of_queue && trouble[0] == '\0') {
        *err = problem;
        return NULL;
    }
    if (stats == NULL)
        stats = json_pack("{s:s}", "queue", queue);
    const char *text = trouble[0] != '\0' ? trouble : problem.text;
    tl_object_set(&stats, "trouble", *text != '\0' ? json_string(text) : json_null());
    if (stats == NULL)
        tl_error_set(err, TL_ERR_NOMEM, "no memory for queue %s", queue);
    return stats;
}

json_t *tl_handle_queue_list(struct tl_control_call *call)
{
    char(*names)[TL_QUEUE_NAME_MAX + 1] = NULL;
    size_t n = 0;
    struct tl_list_page page;
    const char *prefix = call->config->redis.key_prefix;
    if (!tl_list_page_read(call, &page))
        return NULL;
    json_t *list = json_array();
    bool ok = tl_queue_list(call->redis, prefix, &names, &n, &call->err);
    for (size_t i = 0; ok && i < n; i++) {
        struct tl_error problem = {0};
        if (!tl_list_page_takes(&page, names[i]))
            continue;
        json_t *stats = row_of(call, names[i], &problem);
        if (stats != NULL)
            tl_list_add(&list, stats);
        else if (problem.kind == TL_ERR_NOQUEUE)
            page.n--; /* another one has its place on the page */
        else
            ok = tl_error_set(&call->err, problem.kind, "%s", problem.text);
    }
    free(names);
    return tl_list_page_to_json(&page, ok, "queues", list);
}

/* ---- one queue ---- */

json_t *tl_handle_queue_get(struct tl_control_call *call)
{
    return describe(call, NULL);
}

/* Reads what the body wishes into wish->settings, which hold those that are there; else refuses
 * with all that is wrong. */
static bool read_wish(struct tl_control_call *call, struct tl_settings_wish *wish,
                      const json_t *object, bool whole)
{
    if (!tl_settings_wish_read(wish, object, whole, &call->err))
        return false;
    if (wish->mistakes.n == 0)
        return true;
    char detail[TROUBLE_MAX + 64];
    json_t *errors = tl_settings_wish_errors(wish);
    if (errors == NULL)
        return tl_error_set(&call->err, TL_ERR_NOMEM, "no memory for what is wrong");
    snprintf(detail, sizeof(detail), "%s%s",
             json_string_value(json_object_get(json_array_get(errors, 0), "detail")),
             wish->mistakes.n > 1 ? "; see errors for the others" : "");
    tl_call_refuse_listed(call, errors, detail);
    json_decref(errors);
    return false;
}

/* May there be another queue? Counts the entries of tl:queues. */
static bool has_room(struct tl_control_call *call)
{
    char key[TL_KEY_MAX];
    const struct tl_config *config = call->config;
    struct tl_redis *none = tl_control_redis(call->control, NULL, &call->err);
    struct tl_reply *reply =
        none != NULL ? tl_ask(none, &call->err, "SCARD",
                              tl_key_common(config->redis.key_prefix, TL_COMMON_QUEUES, key), NULL)
                     : NULL;
    if (reply == NULL)
        return false;
    uint64_t n = (uint64_t)tl_reply_integer(reply);
    tl_reply_free(reply);
    return n < config->admin.max_queues ||
           tl_call_refuse(call, TL_REFUSAL_LIMIT,
                          "there are %llu queues; the limit is admin.max_queues: delete one",
                          (unsigned long long)n);
}

/* Creates the call's queue with the defaults and what the object wishes. */
static json_t *create(struct tl_control_call *call, const json_t *object)
{
    const char *prefix = call->config->redis.key_prefix;
    struct tl_settings_wish wish;
    bool created = false;
    tl_queue_settings_defaults(&wish.settings);
    if (!read_wish(call, &wish, object, false) || !has_room(call) ||
        !tl_queue_create(tl_queue_site(call->control->store, call->keys.queue), prefix,
                         call->keys.queue, &wish.settings, call->request->actor, &created,
                         &call->err))
        return NULL;
    if (!created)
        return tl_call_refuse(call, TL_REFUSAL_CONFLICT, "there is a queue %s already",
                              call->keys.queue);
    call->status = 201;
    return describe(call, NULL);
}

json_t *tl_handle_queue_create(struct tl_control_call *call)
{
    const char *name = NULL;
    const json_t *settings = NULL;
    if (!tl_call_body(call, "name", &name, "settings*", &settings, NULL))
        return NULL;
    if (settings != NULL && !json_is_object(settings))
        return tl_call_refuse(call, TL_REFUSAL_BAD_BODY, "\"settings\" must be an object");
    return tl_call_keys(call->control, name, &call->keys, &call->err) ? create(call, settings)
                                                                      : NULL;
}

/* Changes the settings to those that the body wishes. *missing: there is no such queue. */
static json_t *change(struct tl_control_call *call, bool whole, bool *missing)
{
    struct tl_settings_wish wish;
    bool exists = tl_queue_load(call->redis, &call->keys, &wish.settings, &call->err);
    bool is_named = whole;
    *missing = !exists && call->err.kind == TL_ERR_NOQUEUE;
    /* Another change may come between: what is refused then is refused by the change itself. */
    if (!exists || !read_wish(call, &wish, call->request->body, whole))
        return NULL;
    for (size_t i = 0; i < TL_QUEUE_ROWS_MAX; i++)
        is_named = is_named || wish.places[i].line > 0;
    if (!is_named)
        return tl_call_refuse(call, TL_REFUSAL_BAD_BODY, "the body names no setting");
    return tl_resource_change(
        call, &(struct tl_queue_changes){.places = wish.places, .wanted = &wish.settings});
}

json_t *tl_handle_queue_put(struct tl_control_call *call)
{
    bool missing = false;
    json_t *body = change(call, true, &missing);
    if (missing && call->request->if_match != NULL)
        return tl_call_refuse(call, TL_REFUSAL_CHANGED, "queue %s does not exist",
                              call->keys.queue);
    if (!missing)
        return body;
    call->err = (struct tl_error){0};
    return create(call, call->request->body);
}

json_t *tl_handle_queue_patch(struct tl_control_call *call)
{
    bool missing = false;
    json_t *body = change(call, false, &missing);
    if (missing)
        tl_call_refuse(call, TL_REFUSAL_NO_QUEUE, "queue %s does not exist", call->keys.queue);
    return body;
}

/* ---- deletion ---- */

bool tl_queue_listed(struct tl_control *control, const char *queue, bool *listed,
                     struct tl_error *err)
{
    char key[TL_KEY_MAX];
    struct tl_redis *none = tl_control_redis(control, NULL, err);
    if (none == NULL)
        return false;
    struct tl_reply *reply = tl_ask(
        none, err, "SISMEMBER",
        tl_key_common(control->config->redis.key_prefix, TL_COMMON_QUEUES, key), queue, NULL);
    *listed = tl_reply_integer(reply) == 1;
    tl_reply_free(reply);
    return reply != NULL;
}

/* Takes the queue off the list. *listed: it was on it. */
static bool unlist(struct tl_control_call *call, const char *generation, bool *listed)
{
    const char *prefix = call->config->redis.key_prefix;
    char queues[TL_KEY_MAX];
    char changes[TL_KEY_MAX];
    struct tl_args args = {0};
    struct tl_redis *none = tl_control_redis(call->control, NULL, &call->err);
    if (none == NULL)
        return false;
    tl_call_begin_on(&args, TL_FN_UNLIST_QUEUE, 2);
    tl_args_strs(&args, tl_key_common(prefix, TL_COMMON_QUEUES, queues),
                 tl_key_common(prefix, TL_COMMON_CHANGES, changes), call->keys.queue, generation,
                 NULL);
    tl_actor_append(call->request->actor, &args);
    struct tl_reply *reply = tl_call_once(none, &args, &call->err);
    *listed = tl_reply_integer(reply) == 1;
    tl_reply_free(reply);
    return reply != NULL;
}

/* What stays of the scratch queue of a rehearsal, whose name is never used again: until all
 * programs know that it is gone. */
enum { REHEARSAL_KEPT_MS = 600000 };

/* Deletes the queue: its line, its sessions and its settings (delete.lua), and takes it off the
 * list. *existed is false when there was none. May be repeated after a failure. */
static bool delete_queue(struct tl_control_call *call, bool *existed)
{
    struct tl_args args = {0};
    bool listed = false;
    if (!tl_queue_listed(call->control, call->keys.queue, &listed, &call->err))
        return false;
    tl_call_begin(&args, TL_FN_DELETE, &call->keys);
    const bool rehearsal = tl_queue_is_rehearsal(call->keys.queue);
    tl_args_int(&args, rehearsal ? REHEARSAL_KEPT_MS : call->config->retention.changes_ms);
    tl_args_str(&args, listed ? "1" : "0");
    tl_args_int(&args, rehearsal ? REHEARSAL_KEPT_MS : 0);
    tl_actor_append(call->request->actor, &args);
    struct tl_reply *reply = tl_call_once(call->redis, &args, &call->err);
    if (reply == NULL)
        return false;
    bool ok = unlist(call, tl_reply_text(reply, 1), &listed);
    *existed = tl_reply_signed(reply, 0) == 1 || listed;
    tl_reply_free(reply);
    return ok;
}

json_t *tl_handle_queue_delete(struct tl_control_call *call)
{
    struct tl_queue_info info;
    char etag[TL_CONTROL_ETAG_MAX];
    const char *name = tl_target_parameter(&call->target, "confirm");
    bool existed = false;
    if (!tl_call_body(call, NULL))
        return NULL;
    if (name == NULL)
        return tl_call_refuse(call, TL_REFUSAL_BAD_QUERY, "the query needs ?confirm=%s",
                              call->keys.queue);
    if (strcmp(name, call->keys.queue) != 0)
        return tl_call_refuse(call, TL_REFUSAL_INVALID,
                              "confirm must name the queue that is to be deleted: %s",
                              call->keys.queue);
    if (call->request->if_match != NULL) {
        if (!tl_queue_info_send(call->redis, &call->keys, &call->err) ||
            !tl_queue_info_receive(call->redis, &call->keys, &info, &call->err))
            return NULL;
        etag_of(info.generation, &info.settings, etag);
        if (!matches(call->request->if_match, etag))
            return tl_call_refuse(call, TL_REFUSAL_CHANGED,
                                  "the settings are no longer those that If-Match names");
    }
    if (!delete_queue(call, &existed))
        return NULL;
    return existed ? json_pack("{s:s, s:b}", "name", call->keys.queue, "deleted", 1)
                   : tl_call_refuse(call, TL_REFUSAL_NO_QUEUE, "queue %s does not exist",
                                    call->keys.queue);
}
