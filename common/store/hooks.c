/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "common/store/hooks.h"
#include "common/store/library.h"

static int64_t member(const json_t *object, const char *name)
{
    return (int64_t)json_number_value(json_object_get(object, name));
}

/* What told.lua writes. False when memory ran out. */
static bool read_state(const char *text, struct tl_hook_state *state, struct tl_error *err)
{
    json_error_t error;
    json_t *object = json_loads(text, 0, &error);
    if (object == NULL && json_error_code(&error) == json_error_out_of_memory)
        return tl_error_set(err, TL_ERR_NOMEM, "no memory for the state of a hook");
    state->told = (uint64_t)member(object, "told");
    state->lost = (uint64_t)member(object, "lost");
    state->asked_ms = member(object, "at");
    state->failing_ms = member(object, "since");
    state->status = member(object, "status");
    const char *problem = json_string_value(json_object_get(object, "problem"));
    snprintf(state->problem, sizeof(state->problem), "%s", problem != NULL ? problem : "");
    json_decref(object);
    return true;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct tl_hook_state *)a)->hook, ((const struct tl_hook_state *)b)->hook);
}

bool tl_hook_states_read(const struct tl_reply *reply, struct tl_hook_states *states,
                         struct tl_error *err)
{
    enum { NAME, CURSOR, STATE, PENDING, OLDEST, GONE, PARTS };
    states->watched = *tl_reply_text(reply, 0) != '\0';
    states->n = 0;
    for (size_t at = 1; at + PARTS <= tl_reply_count(reply) && states->n < TL_HOOKS_MAX;
         at += PARTS) {
        struct tl_hook_state *state = &states->list[states->n++];
        uint64_t gone = tl_reply_number(reply, at + GONE);
        *state = (struct tl_hook_state){0};
        if (!read_state(tl_reply_text(reply, at + STATE), state, err))
            return false;
        state->hook = tl_reply_text(reply, at + NAME);
        state->event = strtoull(tl_reply_text(reply, at + CURSOR), NULL, 10);
        state->pending = tl_reply_number(reply, at + PENDING);
        state->oldest_ms = tl_reply_signed(reply, at + OLDEST);
        state->lost += gone;
        state->losing = gone > 0;
    }
    qsort(states->list, states->n, sizeof(states->list[0]), by_name);
    return true;
}

bool tl_hook_test(struct tl_redis *redis, const struct tl_keys *keys, const char *hook,
                  uint64_t *event, struct tl_error *err)
{
    struct tl_args args = {0};
    tl_call_begin(&args, TL_FN_HOOK_TEST, keys);
    tl_args_strs(&args, TL_EVENTS_KEPT, hook, NULL);
    struct tl_reply *reply = tl_call_once(redis, &args, err);
    if (reply == NULL)
        return false;
    *event = strtoull(tl_reply_string(reply, NULL), NULL, 10);
    tl_reply_free(reply);
    return true;
}
