/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/config/webhook_table.h"
#include "common/control/call.h"

/* ---- as JSON ---- */

enum { ID_MAX = TL_QUEUE_NAME_MAX + 1 + TL_WEBHOOK_NAME_MAX + 1 };

/* How far a webhook was told of one queue. */
struct delivery {
    const char *name;             /* borrowed */
    const struct tl_reply *reply; /* DELIVERY, borrowed; NULL: no notifier knows the webhook */
};

static json_int_t member(const json_t *object, const char *name)
{
    return (json_int_t)json_number_value(json_object_get(object, name));
}

/* kept_ms: how long the journal is kept. */
static json_t *describe(const struct delivery *delivery, bool is_watched, int64_t now_ms,
                        int64_t kept_ms)
{
    json_error_t error;
    const struct tl_reply *reply = delivery->reply;
    /* What told.lua wrote; NULL: nothing, or nothing that can be read. */
    json_t *told = json_loads(tl_reply_text(reply, TL_DELIVERY_STATE), 0, &error);
    if (told == NULL && json_error_code(&error) == json_error_out_of_memory)
        return NULL;
    int64_t pending = tl_reply_signed(reply, TL_DELIVERY_PENDING);
    int64_t gone = tl_reply_signed(reply, TL_DELIVERY_GONE);
    int64_t oldest_ms = tl_reply_signed(reply, TL_DELIVERY_OLDEST);
    int64_t age_ms = pending > 0 && now_ms > oldest_ms ? now_ms - oldest_ms : 0;
    json_int_t failing_ms = member(told, "since"), status = member(told, "status");
    const char *problem = json_string_value(json_object_get(told, "problem"));
    /* Dead: it fails, and events that it was not told of are gone, or go next. */
    const char *state = !is_watched || reply == NULL   ? "unwatched"
                        : failing_ms == 0              ? member(told, "at") != 0 ? "answers" : "new"
                        : gone > 0 || age_ms > kept_ms ? "dead"
                                                       : "failing";
    json_t *row = json_pack(
        "{s:s, s:s, s:I, s:o, s:I, s:I, s:o, s:o, s:s?, s:o, s:I}", "name", delivery->name, "state",
        state, "pending", (json_int_t)pending, "oldest_pending_ms",
        pending > 0 ? json_integer((json_int_t)age_ms) : json_null(), "told", member(told, "told"),
        "lost", member(told, "lost") + (json_int_t)gone, "asked_at",
        tl_call_time(member(told, "at")), "status",
        status != 0 ? json_integer(status) : json_null(), "problem",
        problem != NULL && *problem != '\0' ? problem : NULL, "failing_since",
        tl_call_time(failing_ms), "event", (json_int_t)tl_reply_signed(reply, TL_DELIVERY_CURSOR));
    json_decref(told);
    return row;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct delivery *)a)->name, ((const struct delivery *)b)->name);
}

static bool has(const struct delivery *list, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(list[i].name, name) == 0)
            return true;
    return false;
}

json_t *tl_webhooks_to_json(const struct tl_config *config, const char *queue,
                            const struct tl_reply *reply)
{
    struct delivery all[2 * TL_WEBHOOKS_MAX]; /* those that are kept, and those of the file */
    const struct tl_reply *kept = tl_reply_at(reply, TL_WEBHOOKS_DELIVERIES);
    bool is_watched = *tl_reply_text(reply, TL_WEBHOOKS_NOTIFIER) != '\0';
    size_t n = 0;
    for (size_t i = 0; i < tl_reply_count(kept) && n < TL_WEBHOOKS_MAX; i++) {
        const struct tl_reply *one = tl_reply_at(kept, i);
        all[n++] = (struct delivery){tl_reply_text(one, TL_DELIVERY_NAME), one};
    }
    for (size_t i = 0; i < config->n_webhooks; i++) {
        const struct tl_webhook_config *webhook = &config->webhooks[i];
        if (tl_webhook_watches(webhook, queue) && !has(all, n, webhook->name))
            all[n++] = (struct delivery){webhook->name, NULL};
    }
    qsort(all, n, sizeof(all[0]), by_name);
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++)
        tl_list_add(&list, describe(&all[i], is_watched, tl_reply_signed(reply, TL_WEBHOOKS_NOW),
                                    config->retention.webhooks_ms));
    return list;
}

/* ---- calls ---- */

/* Appends the webhooks of a queue that belong to the page. One of several queues that is just being
 * deleted has none. */
static bool append_webhooks(struct tl_control_call *call, const char *queue, bool is_one_of_several,
                            struct tl_list_page *page, json_t **list)
{
    struct tl_keys keys;
    struct tl_redis *redis = tl_call_keys(call->control, queue, &keys, &call->err)
                                 ? tl_call_connect(call->control, queue, &call->err)
                                 : NULL;
    struct tl_reply *reply =
        redis != NULL ? tl_call_read(redis, TL_FN_WEBHOOKS, &keys, &call->err) : NULL;
    if (reply == NULL)
        return is_one_of_several && call->err.kind == TL_ERR_NOQUEUE;
    json_t *webhook, *all = tl_webhooks_to_json(call->config, queue, reply);
    size_t i;
    json_array_foreach(all, i, webhook)
    {
        char id[ID_MAX];
        snprintf(id, sizeof(id), "%s/%s", queue,
                 json_string_value(json_object_get(webhook, "name")));
        if (!tl_list_page_takes(page, id))
            continue;
        json_t *row = json_incref(webhook);
        tl_object_set(&row, "id", json_string(id));
        tl_object_set(&row, "queue", json_string(queue));
        tl_list_add(list, row);
    }
    json_decref(all);
    tl_reply_free(reply);
    return all != NULL;
}

json_t *tl_handle_webhook_list(struct tl_control_call *call)
{
    char(*names)[TL_QUEUE_NAME_MAX + 1] = NULL;
    size_t n = 0;
    struct tl_list_page page;
    if (!tl_list_page_read(call, &page))
        return NULL;
    json_t *list = json_array();
    bool ok = tl_queue_list(call->redis, call->config->redis.key_prefix, &names, &n, &call->err);
    size_t before = page.after != NULL ? strcspn(page.after, "/") : 0;
    for (size_t i = 0; ok && i < n && !page.has_more; i++)
        if (before == 0 || strncmp(names[i], page.after, before) >= 0)
            ok = append_webhooks(call, names[i], true, &page, &list);
    free(names);
    return tl_list_page_to_json(&page, ok, "webhooks", list);
}

json_t *tl_handle_queue_webhooks(struct tl_control_call *call)
{
    struct tl_list_page page;
    if (!tl_list_page_read(call, &page))
        return NULL;
    json_t *list = json_array();
    bool ok = append_webhooks(call, call->keys.queue, false, &page, &list);
    json_t *body = tl_list_page_to_json(&page, ok, "webhooks", list);
    if (body != NULL)
        tl_object_set(&body, "queue", json_string(call->keys.queue));
    return body;
}

json_t *tl_handle_webhook_test(struct tl_control_call *call)
{
    struct tl_args args = {0};
    char quoted[80];
    if (!tl_call_body(call, NULL))
        return NULL;
    tl_quote(call->name, quoted, sizeof(quoted));
    tl_call_begin(&args, TL_FN_WEBHOOK_TEST, &call->keys);
    tl_args_strs(&args, TL_EVENTS_KEPT, call->name, NULL);
    struct tl_reply *reply = tl_call_once(call->redis, &args, &call->err);
    if (reply == NULL)
        return NULL;
    int64_t event = tl_reply_integer(reply); /* of "EVENT-NTH" */
    tl_reply_free(reply);
    if (event == 0)
        return tl_call_refuse(
            call, TL_REFUSAL_CONFLICT,
            "no notifier watches queue %s for a webhook %s: is tellerline-notifier "
            "running, with this webhook in its configuration?",
            call->keys.queue, quoted);
    call->status = 202;
    return json_pack("{s:s, s:s, s:I}", "queue", call->keys.queue, "name", call->name, "event",
                     (json_int_t)event);
}
