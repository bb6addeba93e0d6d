/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/config/value.h"
#include "common/control/call.h"
#include "common/wire/batch.h"
#include "common/wire/events.h"

enum {
    VISITORS_MAX = TL_BATCH_COMMANDS_MAX,
    ERRORS_MAX = 20, /* are listed; the rest of a wrong list is most likely wrong in the same way */
    WAIT_MS = 5000,  /* for the outcome */
    BLOCK_MS = 500,  /* below the time-out of a command, and a deleted queue is noticed */
};

/* A bulk join under way. */
struct bulk {
    struct tl_queue_settings settings;
    size_t n;
    struct {
        const char *visitor; /* borrowed from the body */
        unsigned lane;
    } * list;
    char after[48]; /* the outcome is among the events after this id */
};

/* ---- what is asked for ---- */

/* What is wrong with the i-th entry; NULL: nothing. */
static const char *read_entry(struct bulk *bulk, size_t i, const json_t *entry)
{
    const char *visitor = json_string_value(json_object_get(entry, "visitor"));
    const json_t *lane = json_object_get(entry, "lane");
    size_t known = (visitor != NULL ? 1U : 0U) + (lane != NULL ? 1U : 0U);
    if (visitor == NULL || json_object_size(entry) != known)
        return "an object with \"visitor\" and optionally \"lane\"";
    if (!tl_visitor_valid(visitor, strlen(visitor)))
        return "a visitor id is 1 to 64 printable characters without space";
    bulk->list[i].visitor = visitor;
    bulk->list[i].lane = bulk->settings.default_lane;
    if (lane != NULL &&
        (!json_is_string(lane) ||
         !tl_lane_find(&bulk->settings, json_string_value(lane), &bulk->list[i].lane)))
        return "the lane is not one of the queue's";
    return NULL;
}

static bool read_list(struct tl_control_call *call, struct bulk *bulk)
{
    const json_t *visitors = NULL;
    if (!tl_call_body(call, "visitors*", &visitors, NULL))
        return false;
    bulk->n = json_array_size(visitors);
    if (bulk->n < 1 || bulk->n > VISITORS_MAX)
        return tl_call_refuse(call, TL_REFUSAL_INVALID, "\"visitors\" must be a list of 1 to %d",
                              VISITORS_MAX);
    bulk->list = calloc(bulk->n, sizeof(*bulk->list));
    json_t *errors = json_array();
    for (size_t i = 0; bulk->list != NULL && i < bulk->n && json_array_size(errors) < ERRORS_MAX;
         i++) {
        char name[32];
        const char *wrong = read_entry(bulk, i, json_array_get(visitors, i));
        snprintf(name, sizeof(name), "visitors[%zu]", i);
        if (wrong != NULL)
            tl_list_add(&errors, json_pack("{s:s, s:s}", "name", name, "detail", wrong));
    }
    bool ok = bulk->list != NULL && errors != NULL && json_array_size(errors) == 0;
    if (errors != NULL && json_array_size(errors) > 0)
        tl_call_refuse_listed(call, errors,
                              "nobody was joined: some entries are not valid, see errors");
    json_decref(errors);
    return ok;
}

/* ---- sending ---- */

static bool run(struct tl_control_call *call, struct bulk *bulk, const void *bytes, size_t length)
{
    struct tl_args args = {0};
    tl_call_begin(&args, TL_FN_JOINS, &call->keys);
    tl_args_bin(&args, bytes, length);
    tl_args_uint(&args, bulk->n);
    tl_actor_append(call->request->actor, &args);
    struct tl_reply *reply = tl_call_once(call->redis, &args, &call->err);
    if (reply == NULL)
        return false;
    snprintf(bulk->after, sizeof(bulk->after), "%s", tl_reply_string(reply, NULL));
    tl_reply_free(reply);
    return true;
}

static bool send(struct tl_control_call *call, struct bulk *bulk)
{
    struct tl_control *control = call->control;
    size_t length = 0;
    struct tl_batch_writer writer = {0};
    bool all = true;
    for (size_t i = 0; all && i < bulk->n; i++) {
        const char *visitor = bulk->list[i].visitor;
        const struct tl_command join = {.kind = TL_COMMAND_JOIN,
                                        .visitor = visitor,
                                        .visitor_length = visitor != NULL ? strlen(visitor) : 0,
                                        .numbers = {bulk->list[i].lane}};
        all = tl_batch_add(&writer, &join) >= 0;
    }
    const void *bytes =
        all ? tl_batch_finish(&writer, control->writer, ++control->batches, &length) : NULL;
    if (bytes == NULL)
        tl_call_refuse(call, TL_REFUSAL_INTERNAL, "no memory for %zu visitors", bulk->n);
    bool ok = bytes != NULL && run(call, bulk, bytes, length);
    free(writer.bytes);
    return ok;
}

/* ---- the outcome ---- */

static const struct tl_exception *exception_of(const struct tl_event *applied, size_t i)
{
    for (size_t k = 0; k < applied->n_exceptions; k++)
        if (applied->exceptions[k].index == i)
            return &applied->exceptions[k];
    return NULL;
}

/* What became of the i-th visitor. NULL: out of memory. */
static json_t *outcome_of(const struct bulk *bulk, const struct tl_event *applied, size_t i)
{
    const struct tl_exception *exception = exception_of(applied, i);
    bool has_place = true;
    const char *status = "waiting";
    tl_place place = tl_place_make(bulk->list[i].lane, applied->first_seq + i);
    if (exception != NULL) {
        place = exception->place;
        has_place =
            exception->outcome == TL_OUTCOME_WAITING || exception->outcome == TL_OUTCOME_ACTIVE;
        status = !has_place                                ? "refused"
                 : exception->outcome == TL_OUTCOME_ACTIVE ? "active"
                                                           : "waiting";
    }
    json_t *outcome = json_pack("{s:s, s:s, s:b}", "visitor", bulk->list[i].visitor, "status",
                                status, "new", exception == NULL);
    tl_place_to_json(&outcome, &bulk->settings, has_place ? &place : NULL);
    return outcome;
}

static json_t *outcomes(const struct tl_control_call *call, const struct bulk *bulk,
                        const struct tl_event *applied)
{
    json_t *list = json_array();
    for (size_t i = 0; i < bulk->n; i++)
        tl_list_add(&list, outcome_of(bulk, applied, i));
    return json_pack("{s:s, s:o}", "queue", call->keys.queue, "visitors", list);
}

/* Is the outcome among the events of this entry? *body tells it. */
static bool look_at(const struct tl_control_call *call, const struct bulk *bulk,
                    const struct tl_reply *entry, json_t **body)
{
    size_t length;
    struct tl_event_entry events;
    const char *payload = tl_reply_string(tl_reply_at(tl_reply_at(entry, 1), 1), &length);
    if (!tl_events_decode(payload, length, &events, NULL))
        return false; /* a newer release wrote it; the outcome may be in another */
    bool found = false;
    for (size_t i = 0; i < events.n_events && !found; i++) {
        const struct tl_event *event = &events.events[i];
        found = event->kind == TL_EVENT_APPLIED && event->batch == call->control->batches &&
                strcmp(event->worker, call->control->writer) == 0;
        if (found)
            *body = outcomes(call, bulk, event);
    }
    tl_events_free(&events);
    return found;
}

/* Reads the next events. *found: *body has the outcome. */
static bool read_events(const struct tl_control_call *call, struct bulk *bulk, bool *found,
                        json_t **body)
{
    struct tl_error err = {0};
    struct tl_args args = {0};
    tl_args_strs(&args, "XREAD", "COUNT", "100", "BLOCK", NULL);
    tl_args_uint(&args, BLOCK_MS);
    tl_args_strs(&args, "STREAMS", call->keys.names[TL_KEY_EVENTS], bulk->after, NULL);
    struct tl_reply *reply = tl_redis_call_blocking(call->redis, &args, BLOCK_MS, &err);
    tl_args_free(&args);
    if (reply == NULL)
        return false;
    const struct tl_reply *entries = tl_reply_at(tl_reply_at(reply, 0), 1);
    for (size_t i = 0; i < tl_reply_count(entries) && !*found; i++) {
        const struct tl_reply *entry = tl_reply_at(entries, i);
        snprintf(bulk->after, sizeof(bulk->after), "%s", tl_reply_text(entry, 0));
        *found = look_at(call, bulk, entry, body);
    }
    tl_reply_free(reply);
    return true;
}

static json_t *wait_for_outcome(struct tl_control_call *call, struct bulk *bulk)
{
    struct tl_error err = {0};
    int64_t until_ms = tl_clock_ms() + WAIT_MS;
    json_t *body = NULL;
    bool found = false;
    bool ok = true;
    while (ok && !found && tl_clock_ms() < until_ms)
        ok = read_events(call, bulk, &found, &body);
    /* As single joins are told of their places: once they survive what redis.durability names. The
     * joins are in the stream, so they are applied even if the connection is gone now. */
    if (found && tl_durable_wait(&call->control->durable, call->redis, call->keys.queue, &err))
        return body;
    json_decref(body);
    call->status = 202;
    return json_pack("{s:s, s:s, s:I}", "queue", call->keys.queue, "status", "pending", "visitors",
                     (json_int_t)bulk->n);
}

json_t *tl_handle_joins(struct tl_control_call *call)
{
    struct bulk bulk = {0};
    json_t *body = NULL;
    if (tl_queue_load(call->redis, &call->keys, &bulk.settings, &call->err) &&
        read_list(call, &bulk) && send(call, &bulk))
        body = wait_for_outcome(call, &bulk);
    free(bulk.list);
    return body;
}
