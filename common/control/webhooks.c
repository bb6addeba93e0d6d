/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/config/webhook_table.h"
#include "common/control/call.h"

/* ---- as JSON ---- */

enum { ID_MAX = TL_QUEUE_NAME_MAX + 1 + TL_WEBHOOK_NAME_MAX + 1 };

/* A webhook on one queue: what webhooks_of() of stats.lua says of it. */
struct webhook {
    const char *name;   /* borrowed */
    json_t *kept;       /* what told.lua wrote; NULL: nothing, or nothing that can be read */
    json_int_t event;   /* of the last entry of the journal that it was told of */
    json_int_t pending; /* entries that it was not told of yet */
    json_int_t gone;    /* those that it is never told of, since its last answer */
    int64_t oldest_ms;  /* when the first of the pending ones happened; -1: none is */
    int64_t failing_ms; /* since when it fails; 0: it does not */
    bool unwatched;     /* no notifier tells it */
};

static json_int_t member(const json_t *object, const char *name)
{
    return (json_int_t)json_number_value(json_object_get(object, name));
}

/* Reads the parts from the i-th on. False: no memory. */
static bool read_webhook(const struct tl_reply *reply, size_t i, struct webhook *webhook)
{
    enum { NAME, CURSOR, STATE, PENDING, OLDEST, GONE };
    json_error_t error;
    *webhook = (struct webhook){.name = tl_reply_text(reply, i + NAME),
                                .kept = json_loads(tl_reply_text(reply, i + STATE), 0, &error),
                                .event = tl_reply_signed(reply, i + CURSOR),
                                .pending = tl_reply_signed(reply, i + PENDING),
                                .gone = tl_reply_signed(reply, i + GONE),
                                .oldest_ms = tl_reply_signed(reply, i + OLDEST)};
    webhook->failing_ms = member(webhook->kept, "since");
    return webhook->kept != NULL || json_error_code(&error) != json_error_out_of_memory;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct webhook *)a)->name, ((const struct webhook *)b)->name);
}

/* Dead: it fails, and events that it was not told of are gone, or go next. */
static const char *word_of(const struct webhook *webhook, int64_t age_ms, int64_t kept_ms)
{
    if (webhook->unwatched)
        return "unwatched";
    if (webhook->failing_ms != 0)
        return webhook->gone > 0 || age_ms > kept_ms ? "dead" : "failing";
    return member(webhook->kept, "at") != 0 ? "answers" : "new";
}

/* kept_ms: how long the journal is kept. */
static json_t *describe(const struct webhook *webhook, int64_t now_ms, int64_t kept_ms)
{
    bool has_pending = webhook->oldest_ms >= 0;
    int64_t age_ms = has_pending && now_ms > webhook->oldest_ms ? now_ms - webhook->oldest_ms : 0;
    json_int_t status = member(webhook->kept, "status");
    const char *problem = json_string_value(json_object_get(webhook->kept, "problem"));
    return json_pack(
        "{s:s, s:s, s:I, s:o, s:I, s:I, s:o, s:o, s:s?, s:o, s:I}", "name", webhook->name, "state",
        word_of(webhook, age_ms, kept_ms), "pending", webhook->pending, "oldest_pending_ms",
        has_pending ? json_integer((json_int_t)age_ms) : json_null(), "told",
        member(webhook->kept, "told"), "lost", member(webhook->kept, "lost") + webhook->gone,
        "asked_at", tl_call_time(member(webhook->kept, "at")), "status",
        status != 0 ? json_integer(status) : json_null(), "problem",
        problem != NULL && *problem != '\0' ? problem : NULL, "failing_since",
        tl_call_time(webhook->failing_ms), "event", webhook->event);
}

static bool has_webhook(const struct webhook *webhooks, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(webhooks[i].name, name) == 0)
            return true;
    return false;
}

json_t *tl_webhooks_to_json(const struct tl_config *config, const char *queue,
                            const struct tl_reply *reply, int64_t now_ms)
{
    enum { PARTS = 6 };
    struct webhook webhooks[2 * TL_WEBHOOKS_MAX] = {
        0}; /* those that are kept, and those of the file */
    size_t n = 0;
    bool unwatched = *tl_reply_text(reply, 0) == '\0';
    bool ok = true;
    for (size_t i = 1; i + PARTS <= tl_reply_count(reply) && n < TL_WEBHOOKS_MAX; i += PARTS) {
        ok = read_webhook(reply, i, &webhooks[n]) && ok;
        webhooks[n++].unwatched = unwatched;
    }
    for (size_t i = 0; i < config->n_webhooks; i++) {
        const struct tl_webhook_config *webhook = &config->webhooks[i];
        if (tl_webhook_watches(webhook, queue) && !has_webhook(webhooks, n, webhook->name))
            webhooks[n++] =
                (struct webhook){.name = webhook->name, .oldest_ms = -1, .unwatched = true};
    }
    qsort(webhooks, n, sizeof(webhooks[0]), by_name);
    json_t *list = ok ? json_array() : NULL;
    for (size_t i = 0; i < n; i++) {
        tl_list_add(&list, describe(&webhooks[i], now_ms, config->retention.webhooks_ms));
        json_decref(webhooks[i].kept);
    }
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
    json_t *webhook, *all = tl_webhooks_to_json(call->config, queue, tl_reply_at(reply, 1),
                                                tl_reply_signed(reply, 0));
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
    if (ok)
        return json_pack("{s:o, s:b}", "webhooks", list, "has_more", page.has_more);
    json_decref(list);
    return NULL;
}

json_t *tl_handle_queue_webhooks(struct tl_control_call *call)
{
    struct tl_list_page page;
    if (!tl_list_page_read(call, &page))
        return NULL;
    json_t *list = json_array();
    if (append_webhooks(call, call->keys.queue, false, &page, &list))
        return json_pack("{s:s, s:o, s:b}", "queue", call->keys.queue, "webhooks", list, "has_more",
                         page.has_more);
    json_decref(list);
    return NULL;
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
