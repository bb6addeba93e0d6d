#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "common/store/hooks.h"
#include "common/store/queue.h"
#include "common/store/reply.h"
#include "common/store/script.h"

#include "generated/store_scripts.h"

static int64_t member(const json_t *object, const char *name)
{
    return (int64_t)json_number_value(json_object_get(object, name));
}

/* What told.lua writes. What cannot be read is as if it were not there. False when memory ran out.
 */
static bool read_state(const char *text, struct tl_hook_state *state, struct tl_error *err)
{
    json_error_t error;
    json_t *object = json_loads(text, 0, &error);
    if (object == NULL && json_error_code(&error) == json_error_out_of_memory)
        return tl_error_set(err, TL_ERR_NOMEM, "no memory for the state of a hook");
    state->told = (uint64_t)member(object, "told");
    state->lost = (uint64_t)member(object, "lost");
    state->at_ms = member(object, "at");
    state->since_ms = member(object, "since");
    state->status = member(object, "status");
    const char *problem = json_string_value(json_object_get(object, "problem"));
    snprintf(state->problem, sizeof(state->problem), "%s", problem != NULL ? problem : "");
    json_decref(object);
    return true;
}

/* "EVENT-NTH N". False for a missing or damaged text. */
static bool parse_cursor(const char *text, struct tl_hook_state *state, uint64_t *n)
{
    char *end = NULL;
    state->event = strtoull(text, &end, 10);
    if (end == text || *end != '-')
        return false;
    state->nth = strtoull(end + 1, &end, 10);
    if (*end != ' ')
        return false;
    *n = strtoull(end + 1, &end, 10);
    return *end == '\0';
}

bool tl_hook_state_read(struct tl_redis *redis, const struct tl_keys *keys, const char *hook,
                        struct tl_hook_state *state, struct tl_error *err)
{
    char key[TL_KEY_MAX];
    char cursor_field[64], state_field[64];
    struct tl_args args = {0};
    *state = (struct tl_hook_state){0};
    tl_keys_hooks(keys, key);
    snprintf(cursor_field, sizeof(cursor_field), "cursor:%s", hook);
    snprintf(state_field, sizeof(state_field), "state:%s", hook);
    tl_args_strs(&args, "HMGET", key, cursor_field, state_field, NULL);
    struct tl_reply *found = tl_redis_call(redis, &args, err);
    tl_args_reset(&args);
    tl_args_strs(&args, "HGET", keys->names[TL_KEY_STATE], "journaled", NULL);
    struct tl_reply *journaled = found != NULL ? tl_redis_call(redis, &args, err) : NULL;
    tl_args_free(&args);
    bool ok = journaled != NULL;
    uint64_t n = 0;
    const char *cursor = tl_reply_string(tl_reply_at(found, 0), NULL);
    if (ok && parse_cursor(cursor, state, &n)) {
        uint64_t written = (uint64_t)tl_reply_integer(journaled);
        state->watched = true;
        state->behind = written > n ? written - n : 0;
        ok = read_state(tl_reply_string(tl_reply_at(found, 1), NULL), state, err);
    }
    tl_reply_free(journaled);
    tl_reply_free(found);
    return ok;
}

bool tl_hook_test(struct tl_redis *redis, const struct tl_keys *keys, const char *hook,
                  uint64_t *event, struct tl_error *err)
{
    struct tl_args args = {0};
    tl_args_strs(&args, TL_EVENTS_KEPT, hook, NULL);
    struct tl_reply *reply = tl_script_run(redis, tl_script_hook_test, keys, &args, err);
    tl_args_free(&args);
    if (reply == NULL)
        return false;
    *event = strtoull(tl_reply_string(reply, NULL), NULL, 10);
    tl_reply_free(reply);
    return true;
}
