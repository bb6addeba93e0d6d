/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "common/control/call.h"
#include "common/control/deletion.h"
#include "common/control/queues.h"
#include "common/control/resource.h"
#include "common/control/settings_json.h"
#include "common/control/stats.h"
#include "common/store/queue.h"
#include "common/store/reply.h"
#include "common/store/troubles.h"

enum { TROUBLE_MAX = 320 };

/* ---- the list ---- */

/* The numbers of a queue of the list, with its trouble where its data is damaged; then maybe with
 * nothing else. NULL with TL_ERR_NOQUEUE: it is being deleted, or created. */
static json_t *row_of(struct tl_control_call *call, const char *queue, struct tl_error *err)
{
    struct tl_keys keys;
    char trouble[TROUBLE_MAX];
    struct tl_error problem = {0};
    struct tl_redis *redis = tl_call_connect(call->control, queue, err);
    if (redis == NULL || !tl_call_keys(call->control, queue, &keys, err) ||
        !tl_queue_examine(redis, &keys, trouble, err))
        return NULL;
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
    if (*text == '\0' || json_object_set_new(stats, "trouble", json_string(text)) == 0)
        return stats;
    json_decref(stats);
    tl_error_set(err, TL_ERR_NOMEM, "no memory for queue %s", queue);
    return NULL;
}

void tl_handle_queue_list(struct tl_control_call *call)
{
    char(*names)[TL_QUEUE_NAME_MAX + 1] = NULL;
    size_t n = 0;
    struct tl_error err = {0};
    const char *prefix = call->control->config->redis.key_prefix;
    json_t *list = json_array();
    bool ok = tl_queue_list(call->redis, prefix, &names, &n, &err);
    for (size_t i = 0; ok && i < n; i++) {
        struct tl_error problem = {0};
        json_t *stats = row_of(call, names[i], &problem);
        if (stats == NULL && problem.kind == TL_ERR_NOQUEUE)
            continue;
        ok = stats != NULL;
        if (!ok)
            err = problem;
        else if (json_array_append_new(list, stats) != 0)
            ok = tl_error_set(&err, TL_ERR_NOMEM, "no memory for %zu queues", n);
    }
    free(names);
    if (ok) {
        tl_call_answer(call, 200, json_pack("{s:o}", "queues", list));
    } else {
        json_decref(list);
        tl_call_fail(call, &err);
    }
}

/* ---- one queue ---- */

void tl_handle_queue_get(struct tl_control_call *call)
{
    tl_resource_answer(call, 200, NULL);
}

/* Answers 422 with all errors of the wish. */
static bool refuse_wish(struct tl_control_call *call, const struct tl_settings_wish *wish)
{
    const json_t *first = json_array_get(wish->errors, 0);
    size_t n = json_array_size(wish->errors);
    tl_call_refuse(call, 422, "%s%s", json_string_value(json_object_get(first, "detail")),
                   n > 1 ? "; see errors for the others" : "");
    if (json_object_set(call->answer->body, "errors", wish->errors) != 0)
        tl_call_refuse(call, 500, "no memory for the answer");
    return false;
}

/* How many queues there are, or more exactly: entries of tl:queues. */
static bool count_queues(struct tl_control_call *call, uint64_t *n)
{
    char key[TL_KEY_MAX];
    struct tl_error err = {0};
    struct tl_reply *reply =
        tl_ask(call->redis, &err, "SCARD",
               tl_key_common(call->control->config->redis.key_prefix, TL_COMMON_QUEUES, key), NULL);
    if (reply == NULL)
        return tl_call_fail(call, &err);
    *n = (uint64_t)tl_reply_integer(reply);
    tl_reply_free(reply);
    return true;
}

/* The settings of a queue that is to be created: the defaults, and what is wished. False: they are
 * refused, or there are too many queues. */
static bool prepare(struct tl_control_call *call, struct tl_settings_wish *wish,
                    struct tl_queue_settings *settings)
{
    struct tl_error err = {0};
    uint64_t n = 0;
    tl_queue_settings_defaults(settings);
    if (!tl_settings_wish_try(wish, settings, &err))
        return tl_call_fail(call, &err);
    if (json_array_size(wish->errors) > 0)
        return refuse_wish(call, wish);
    if (!count_queues(call, &n))
        return false;
    return n < call->control->config->admin.max_queues ||
           tl_call_refuse(call, 429,
                          "there are %llu queues; the limit is admin.max_queues: delete one",
                          (unsigned long long)n);
}

/* Creates the call's queue. */
static void create(struct tl_control_call *call, struct tl_settings_wish *wish)
{
    const char *prefix = call->control->config->redis.key_prefix;
    struct tl_error err = {0};
    struct tl_queue_settings settings;
    bool created = false;
    if (!prepare(call, wish, &settings))
        return;
    if (!tl_queue_create(call->redis, prefix, call->keys.queue, &settings, call->request->actor,
                         &created, &err))
        tl_call_fail(call, &err);
    else if (!created)
        tl_call_refuse(call, 409, "there is a queue %s already", call->keys.queue);
    else
        tl_resource_answer(call, 201, NULL);
}

void tl_handle_queue_create(struct tl_control_call *call)
{
    struct tl_error err = {0};
    struct tl_settings_wish wish = {0};
    const char *name = NULL;
    const json_t *settings = json_object_get(call->request->body, "settings");
    if (!tl_call_members(call, "name", "settings", NULL) ||
        !tl_call_text(call, "name", true, &name))
        return;
    if (settings != NULL && !json_is_object(settings)) {
        tl_call_refuse(call, 400, "\"settings\" must be an object");
        return;
    }
    if (!tl_call_keys(call->control, name, &call->keys, &err))
        tl_call_refuse(call, 422, "%s", err.text);
    else if (!tl_settings_wish_read(&wish, settings, false, &err))
        tl_call_fail(call, &err);
    else
        create(call, &wish);
    tl_settings_wish_free(&wish);
}

/* Changes the settings; whole: those that are not named get their defaults. *missing: there is no
 * such queue; then nothing is answered. */
static void change(struct tl_control_call *call, struct tl_settings_wish *wish, bool *missing)
{
    struct tl_error err = {0};
    struct tl_queue_settings settings;
    struct tl_changes_made made = {0};
    *missing = false;
    if (!tl_queue_load(call->redis, &call->keys, &settings, &err)) {
        *missing = err.kind == TL_ERR_NOQUEUE;
        if (!*missing)
            tl_call_fail(call, &err);
        return;
    }
    /* Another change may come between: what is refused then is refused by the change itself. */
    if (!tl_settings_wish_try(wish, &settings, &err)) {
        tl_call_fail(call, &err);
    } else if (json_array_size(wish->errors) > 0) {
        refuse_wish(call, wish);
    } else {
        const struct tl_queue_changes changes = {.list = wish->list, .n = wish->n};
        if (tl_resource_change(call, &changes, &made))
            tl_resource_answer(call, 200, &made);
    }
    tl_changes_made_free(&made);
}

void tl_handle_queue_put(struct tl_control_call *call)
{
    struct tl_error err = {0};
    struct tl_settings_wish wish = {0};
    bool missing = false;
    if (!tl_settings_wish_read(&wish, call->request->body, true, &err))
        tl_call_fail(call, &err);
    else
        change(call, &wish, &missing);
    if (missing && call->request->if_match != NULL)
        tl_call_refuse(call, 412, "queue %s does not exist", call->keys.queue);
    else if (missing)
        create(call, &wish);
    tl_settings_wish_free(&wish);
}

void tl_handle_queue_patch(struct tl_control_call *call)
{
    struct tl_error err = {0};
    struct tl_settings_wish wish = {0};
    bool missing = false;
    if (!tl_settings_wish_read(&wish, call->request->body, false, &err))
        tl_call_fail(call, &err);
    else if (wish.n == 0 && json_array_size(wish.errors) == 0)
        tl_call_refuse(call, 400, "the body names no setting");
    else
        change(call, &wish, &missing);
    if (missing)
        tl_call_refuse(call, 404, "queue %s does not exist", call->keys.queue);
    tl_settings_wish_free(&wish);
}

/* ---- deletion ---- */

void tl_handle_queue_delete(struct tl_control_call *call)
{
    struct tl_error err = {0};
    struct tl_queue_info info;
    const struct tl_config *config = call->control->config;
    const char *name = NULL;
    bool existed = false;
    if (!tl_call_members(call, "name", NULL) || !tl_call_text(call, "name", true, &name))
        return;
    if (strcmp(name, call->keys.queue) != 0) {
        tl_call_refuse(call, 422, "the body must name the queue that is to be deleted: %s",
                       call->keys.queue);
        return;
    }
    if (call->request->if_match != NULL) {
        char etag[TL_CONTROL_ETAG_MAX];
        if (!tl_queue_info_send(call->redis, &call->keys, &err) ||
            !tl_queue_info_receive(call->redis, &call->keys, &info, &err)) {
            tl_call_fail(call, &err);
            return;
        }
        tl_resource_etag(info.generation, &info.settings, etag);
        if (!tl_resource_matches(call->request->if_match, etag)) {
            tl_call_refuse(call, 412, "the settings are no longer those that If-Match names");
            return;
        }
    }
    struct tl_redis *none = tl_call_connect(call->control, NULL, &err);
    if (none == NULL ||
        !tl_queue_delete(call->redis, none, config->redis.key_prefix, &call->keys,
                         config->retention.changes_ms, call->request->actor, &existed, &err))
        tl_call_fail(call, &err);
    else if (!existed)
        tl_call_refuse(call, 404, "queue %s does not exist", call->keys.queue);
    else
        tl_call_answer(call, 200, json_pack("{s:s, s:b}", "name", call->keys.queue, "deleted", 1));
}
