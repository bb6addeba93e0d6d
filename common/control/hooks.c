/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "common/base/text.h"
#include "common/config/hook_table.h"
#include "common/control/call.h"
#include "common/control/hooks.h"
#include "common/store/hooks.h"
#include "common/store/library.h"
#include "common/store/queue.h"

/* ---- as JSON ---- */

/* Dead: it fails, and events that it was not told of are gone, or go next. */
static const char *word_of(const struct tl_hook_state *state, bool watched, bool outlived)
{
    if (!watched)
        return "unwatched";
    if (state->failing_ms != 0)
        return state->losing || outlived ? "dead" : "failing";
    return state->asked_ms != 0 ? "answers" : "new";
}

static json_t *describe(const struct tl_hook_state *state, const char *word, int64_t now_ms)
{
    int64_t age_ms = now_ms > state->oldest_ms ? now_ms - state->oldest_ms : 0;
    return json_pack("{s:s, s:s, s:I, s:o, s:I, s:I, s:o, s:o, s:s?, s:o, s:I}", "hook",
                     state->hook, "state", word, "pending", (json_int_t)state->pending,
                     "oldest_pending_ms",
                     state->oldest_ms >= 0 ? json_integer((json_int_t)age_ms) : json_null(), "told",
                     (json_int_t)state->told, "lost", (json_int_t)state->lost, "asked_at",
                     tl_call_time(state->asked_ms), "status",
                     state->status != 0 ? json_integer((json_int_t)state->status) : json_null(),
                     "problem", state->problem[0] != '\0' ? state->problem : NULL, "failing_since",
                     tl_call_time(state->failing_ms), "event", (json_int_t)state->event);
}

static bool has(const struct tl_hook_states *states, const char *hook)
{
    for (size_t i = 0; i < states->n; i++)
        if (strcmp(states->list[i].hook, hook) == 0)
            return true;
    return false;
}

json_t *tl_hooks_to_json(const struct tl_config *config, const char *queue,
                         const struct tl_reply *reply, int64_t now_ms)
{
    struct tl_hook_states states;
    struct tl_error err = {0};
    json_t *list = json_array();
    bool ok = tl_hook_states_read(reply, &states, &err) && list != NULL;
    for (size_t i = 0; ok && i < states.n; i++) {
        const struct tl_hook_state *state = &states.list[i];
        bool outlived =
            state->oldest_ms >= 0 && now_ms - state->oldest_ms > config->retention.journal_ms;
        const char *word = word_of(state, states.watched, outlived);
        ok = json_array_append_new(list, describe(state, word, now_ms)) == 0;
    }
    for (size_t i = 0; ok && i < config->n_hooks; i++) {
        const struct tl_hook_state state = {.hook = config->hooks[i].name, .oldest_ms = -1};
        if (tl_hook_watches(&config->hooks[i], queue) && !has(&states, state.hook))
            ok = json_array_append_new(list, describe(&state, "unwatched", now_ms)) == 0;
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
static bool append_hooks(struct tl_control *control, const char *queue, json_t *all,
                         struct tl_error *err)
{
    size_t i;
    json_t *hook;
    struct tl_error problem = {0};
    json_t *list = read_hooks(control, queue, &problem);
    if (list == NULL && problem.kind == TL_ERR_NOQUEUE)
        return true;
    bool ok = list != NULL;
    if (!ok)
        *err = problem;
    json_array_foreach(list, i, hook)
    {
        if (ok && (json_object_set_new(hook, "queue", json_string(queue)) != 0 ||
                   json_array_append(all, hook) != 0))
            ok = tl_error_set(err, TL_ERR_NOMEM, "no memory for the hooks");
    }
    json_decref(list);
    return ok;
}

void tl_handle_hook_list(struct tl_control_call *call)
{
    char(*names)[TL_QUEUE_NAME_MAX + 1] = NULL;
    size_t n = 0;
    struct tl_error err = {0};
    json_t *all = json_array();
    bool ok = tl_queue_list(call->redis, call->control->config->redis.key_prefix, &names, &n, &err);
    for (size_t i = 0; ok && i < n; i++)
        ok = append_hooks(call->control, names[i], all, &err);
    free(names);
    if (ok) {
        tl_call_answer(call, 200, json_pack("{s:o}", "hooks", all));
    } else {
        json_decref(all);
        tl_call_fail(call, &err);
    }
}

void tl_handle_queue_hooks(struct tl_control_call *call)
{
    struct tl_error err = {0};
    json_t *list = read_hooks(call->control, call->keys.queue, &err);
    if (list != NULL)
        tl_call_answer(call, 200,
                       json_pack("{s:s, s:o}", "queue", call->keys.queue, "hooks", list));
    else
        tl_call_fail(call, &err);
}

void tl_handle_hook_test(struct tl_control_call *call)
{
    struct tl_error err = {0};
    uint64_t event = 0;
    char quoted[80];
    if (!tl_call_members(call, NULL, NULL))
        return;
    tl_quote(call->name, quoted, sizeof(quoted));
    if (!tl_hook_test(call->redis, &call->keys, call->name, &event, &err))
        tl_call_fail(call, &err);
    else if (event == 0)
        tl_call_refuse(call, 409,
                       "no notifier watches queue %s for a hook %s: is tellerline-notifier "
                       "running, with this hook in its configuration?",
                       call->keys.queue, quoted);
    else
        tl_call_answer(call, 202,
                       json_pack("{s:s, s:s, s:I}", "queue", call->keys.queue, "hook", call->name,
                                 "event", (json_int_t)event));
}
