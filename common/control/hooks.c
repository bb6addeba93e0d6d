/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "common/config/hook_table.h"
#include "common/control/call.h"

/* ---- as JSON ---- */

/* A hook on one queue: what hooks_of() of stats.lua says of it. */
struct hook {
    const char *name;   /* borrowed */
    json_t *kept;       /* what told.lua wrote; NULL: nothing, or nothing that can be read */
    json_int_t event;   /* of the last entry of the journal that it was told of */
    json_int_t pending; /* entries that it was not told of yet */
    json_int_t gone;    /* those that it is never told of, since its last answer */
    int64_t oldest_ms;  /* when the first of the pending ones happened; -1: none is */
    int64_t failing_ms; /* since when it fails; 0: it does not */
};

static json_int_t member(const json_t *object, const char *name)
{
    return (json_int_t)json_number_value(json_object_get(object, name));
}

/* Reads the parts from the i-th on. False: no memory. */
static bool read_hook(const struct tl_reply *reply, size_t i, struct hook *hook)
{
    enum { NAME, CURSOR, STATE, PENDING, OLDEST, GONE };
    json_error_t error;
    *hook = (struct hook){.name = tl_reply_text(reply, i + NAME),
                          .kept = json_loads(tl_reply_text(reply, i + STATE), 0, &error),
                          .event = tl_reply_signed(reply, i + CURSOR),
                          .pending = tl_reply_signed(reply, i + PENDING),
                          .gone = tl_reply_signed(reply, i + GONE),
                          .oldest_ms = tl_reply_signed(reply, i + OLDEST)};
    hook->failing_ms = member(hook->kept, "since");
    return hook->kept != NULL || json_error_code(&error) != json_error_out_of_memory;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct hook *)a)->name, ((const struct hook *)b)->name);
}

/* Dead: it fails, and events that it was not told of are gone, or go next. */
static const char *word_of(const struct hook *hook, bool watched, bool outlived)
{
    if (!watched)
        return "unwatched";
    if (hook->failing_ms != 0)
        return hook->gone > 0 || outlived ? "dead" : "failing";
    return member(hook->kept, "at") != 0 ? "answers" : "new";
}

static json_t *describe(const struct hook *hook, const char *word, int64_t now_ms)
{
    int64_t age_ms = now_ms > hook->oldest_ms ? now_ms - hook->oldest_ms : 0;
    json_int_t status = member(hook->kept, "status");
    const char *problem = json_string_value(json_object_get(hook->kept, "problem"));
    return json_pack("{s:s, s:s, s:I, s:o, s:I, s:I, s:o, s:o, s:s?, s:o, s:I}", "hook", hook->name,
                     "state", word, "pending", hook->pending, "oldest_pending_ms",
                     hook->oldest_ms >= 0 ? json_integer((json_int_t)age_ms) : json_null(), "told",
                     member(hook->kept, "told"), "lost", member(hook->kept, "lost") + hook->gone,
                     "asked_at", tl_call_time(member(hook->kept, "at")), "status",
                     status != 0 ? json_integer(status) : json_null(), "problem",
                     problem != NULL && *problem != '\0' ? problem : NULL, "failing_since",
                     tl_call_time(hook->failing_ms), "event", hook->event);
}

json_t *tl_hooks_to_json(const struct tl_config *config, const char *queue,
                         const struct tl_reply *reply, int64_t now_ms)
{
    enum { PARTS = 6 };
    struct hook hooks[TL_HOOKS_MAX] = {0};
    size_t n = 0;
    bool watched = *tl_reply_text(reply, 0) != '\0';
    bool ok = true;
    json_t *list = json_array();
    for (size_t i = 1; i + PARTS <= tl_reply_count(reply) && n < TL_HOOKS_MAX; i += PARTS)
        ok = read_hook(reply, i, &hooks[n++]) && ok;
    qsort(hooks, n, sizeof(hooks[0]), by_name);
    for (size_t i = 0; i < n; i++) {
        bool outlived =
            hooks[i].oldest_ms >= 0 && now_ms - hooks[i].oldest_ms > config->retention.webhooks_ms;
        tl_list_add(&list, describe(&hooks[i], word_of(&hooks[i], watched, outlived), now_ms));
        json_decref(hooks[i].kept);
    }
    for (size_t i = 0; i < config->n_webhooks; i++) {
        const struct hook hook = {.name = config->webhooks[i].name, .oldest_ms = -1};
        if (tl_hook_watches(&config->webhooks[i], queue) &&
            bsearch(&hook, hooks, n, sizeof(hooks[0]), by_name) == NULL)
            tl_list_add(&list, describe(&hook, "unwatched", now_ms));
    }
    if (ok)
        return list;
    json_decref(list);
    return NULL;
}

/* ---- calls ---- */

/* The hooks of a queue. NULL with TL_ERR_NOQUEUE, or what else went wrong. */
static json_t *read_hooks(struct tl_control *control, const char *queue, struct tl_error *err)
{
    struct tl_keys keys;
    struct tl_redis *redis =
        tl_call_keys(control, queue, &keys, err) ? tl_call_connect(control, queue, err) : NULL;
    struct tl_reply *reply = redis != NULL ? tl_call_read(redis, TL_FN_HOOKS, &keys, err) : NULL;
    if (reply == NULL)
        return NULL;
    json_t *list =
        tl_hooks_to_json(control->config, queue, tl_reply_at(reply, 1), tl_reply_signed(reply, 0));
    if (list == NULL)
        tl_error_set(err, TL_ERR_NOMEM, "no memory for the hooks of queue %s", queue);
    tl_reply_free(reply);
    return list;
}

/* Appends the hooks of a queue, with its name. A queue that is just being deleted has none. */
static bool append_hooks(struct tl_control_call *call, const char *queue, json_t **all)
{
    size_t i;
    json_t *hook;
    struct tl_error err = {0};
    json_t *list = read_hooks(call->control, queue, &err);
    if (list == NULL && err.kind != TL_ERR_NOQUEUE)
        return tl_error_set(&call->err, err.kind, "%s", err.text);
    json_array_foreach(list, i, hook)
    {
        json_t *named = json_incref(hook);
        tl_object_set(&named, "queue", json_string(queue));
        tl_list_add(all, named);
    }
    json_decref(list);
    return true;
}

json_t *tl_handle_hook_list(struct tl_control_call *call)
{
    char(*names)[TL_QUEUE_NAME_MAX + 1] = NULL;
    size_t n = 0;
    json_t *all = json_array();
    bool ok = tl_queue_list(call->redis, call->config->redis.key_prefix, &names, &n, &call->err);
    for (size_t i = 0; ok && i < n; i++)
        ok = append_hooks(call, names[i], &all);
    free(names);
    if (ok)
        return json_pack("{s:o}", "hooks", all);
    json_decref(all);
    return NULL;
}

json_t *tl_handle_queue_hooks(struct tl_control_call *call)
{
    json_t *list = read_hooks(call->control, call->keys.queue, &call->err);
    return list != NULL ? json_pack("{s:s, s:o}", "queue", call->keys.queue, "hooks", list) : NULL;
}

json_t *tl_handle_hook_test(struct tl_control_call *call)
{
    struct tl_args args = {0};
    char quoted[80];
    if (!tl_call_body(call, NULL))
        return NULL;
    tl_quote(call->name, quoted, sizeof(quoted));
    tl_call_begin(&args, TL_FN_HOOK_TEST, &call->keys);
    tl_args_strs(&args, TL_EVENTS_KEPT, call->name, NULL);
    struct tl_reply *reply = tl_call_once(call->redis, &args, &call->err);
    if (reply == NULL)
        return NULL;
    int64_t event = tl_reply_integer(reply); /* of "EVENT-NTH" */
    tl_reply_free(reply);
    if (event == 0)
        return tl_call_refuse(call, TL_REFUSAL_CONFLICT,
                              "no notifier watches queue %s for a hook %s: is tellerline-notifier "
                              "running, with this hook in its configuration?",
                              call->keys.queue, quoted);
    call->status = 202;
    return json_pack("{s:s, s:s, s:I}", "queue", call->keys.queue, "hook", call->name, "event",
                     (json_int_t)event);
}
