/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <sodium.h>

#include "common/auth/keyring.h"
#include "common/auth/reference.h"
#include "common/auth/ticket.h"
#include "common/base/units.h"
#include "common/control/call.h"

/* The visitor of the path, which is an id or a ticket. A ticket counts only if it is genuine: a
 * person who sends a forged one to the operator could name another visitor in it. */
static bool find(struct tl_control_call *call, char visitor[TL_VISITOR_MAX + 1])
{
    const char *text = call->name;
    struct tl_ticket ticket;
    struct tl_error err = {0};
    struct tl_keyring *keyring = tl_keyring_load(call->config->secrets.ticket_keys, false, &err);
    bool have_keys = keyring != NULL;
    bool genuine =
        have_keys && tl_ticket_verify(keyring, call->keys.queue, text, strlen(text), &ticket);
    tl_keyring_free(&keyring);
    if (genuine) {
        memcpy(visitor, ticket.visitor, sizeof(ticket.visitor));
        return true;
    }
    /* A short ticket would pass for an id, of which then nothing is known. */
    bool unread = !have_keys && tl_ticket_shaped(text, strlen(text));
    if (!unread && tl_visitor_valid(text, strlen(text))) {
        memcpy(visitor, text, strlen(text) + 1);
        return true;
    }
    if (!unread && strlen(text) <= TL_VISITOR_MAX)
        return tl_call_refuse(call, TL_REFUSAL_INVALID,
                              "a visitor id is 1 to %d printable characters without space",
                              TL_VISITOR_MAX);
    if (have_keys)
        return tl_call_refuse(call, TL_REFUSAL_INVALID, "this is not a genuine ticket of queue %s",
                              call->keys.queue);
    return tl_call_refuse(call, TL_REFUSAL_INVALID,
                          "the ticket cannot be verified, give the visitor's id instead: %s",
                          err.text);
}

/* ---- look up ---- */

/* What the store knows of a visitor: answers of the pipeline, in the order of its commands, which
 * is that in which a visitor changes state, so that one who moves on meanwhile is found. */
enum { OF_WAITING, OF_RANK, OF_SESSION, OF_DEADLINE, OF_END, ANSWERS };

static bool ask(struct tl_control_call *call, const char *visitor,
                struct tl_reply *answers[ANSWERS])
{
    struct tl_error err = {0};
    const struct {
        const char *command;
        enum tl_key key;
    } questions[ANSWERS] = {
        [OF_WAITING] = {"ZSCORE", TL_KEY_WAITING}, [OF_RANK] = {"ZRANK", TL_KEY_WAITING},
        [OF_SESSION] = {"HGET", TL_KEY_SESSIONS},  [OF_DEADLINE] = {"ZSCORE", TL_KEY_ACTIVE},
        [OF_END] = {"ZSCORE", TL_KEY_ENDED},
    };
    bool ok = true;
    for (size_t i = 0; ok && i < ANSWERS; i++) {
        struct tl_args args = {0};
        tl_args_strs(&args, questions[i].command, call->keys.names[questions[i].key], visitor,
                     NULL);
        ok = tl_redis_append(call->redis, &args, &err);
        tl_args_free(&args);
    }
    for (size_t i = 0; ok && i < ANSWERS; i++) {
        struct tl_error problem = {0};
        answers[i] = tl_redis_next(call->redis, &problem);
        if (answers[i] == NULL && err.kind == TL_OK)
            err = problem; /* a refusal; the other answers must still be received */
        ok = answers[i] != NULL || tl_redis_connected(call->redis);
    }
    if (err.kind != TL_OK)
        call->err = err;
    return err.kind == TL_OK;
}

/* The code that the visitor sees; null where the keys cannot be read. */
static json_t *reference_of(const struct tl_control_call *call, const char *visitor)
{
    char reference[TL_REFERENCE_MAX];
    struct tl_keyring *keyring = tl_keyring_load(call->config->secrets.ticket_keys, false, NULL);
    if (keyring == NULL)
        return json_null();
    tl_reference_write(keyring, call->keys.queue, visitor, reference);
    tl_keyring_free(&keyring);
    return json_string(reference);
}

/* The session, the place in line, or how it ended. False: nothing is known. */
static bool read_facts(struct tl_reply *const answers[ANSWERS], struct tl_visitor_facts *facts)
{
    struct tl_end_record end;
    if (tl_visitor_active(facts, tl_reply_string(answers[OF_SESSION], NULL),
                          tl_reply_string(answers[OF_DEADLINE], NULL)))
        return true;
    facts->expires_ms = 0;
    facts->has_place = tl_record_place(tl_reply_string(answers[OF_WAITING], NULL), &facts->place);
    if (facts->has_place) {
        facts->status = "waiting";
        facts->position = (uint64_t)tl_reply_integer(answers[OF_RANK]) + 1;
        return true;
    }
    if (!tl_record_end(tl_reply_string(answers[OF_END], NULL), &end))
        return false;
    tl_visitor_ended(facts, &end);
    return true;
}

static json_t *show(struct tl_control_call *call, const struct tl_queue_settings *settings,
                    const char *visitor)
{
    struct tl_reply *answers[ANSWERS] = {NULL};
    struct tl_visitor_facts facts = {.visitor = visitor, .claimed = -1};
    json_t *body = NULL;
    bool asked = ask(call, visitor, answers);
    if (asked && !read_facts(answers, &facts))
        tl_call_refuse(call, TL_REFUSAL_NOT_FOUND,
                       "there is no visitor %s; ends are known for retention.ended", visitor);
    else if (asked && tl_joined_fill(&facts, 1, call->control, &call->keys, &call->err))
        body = tl_visitor_to_json(&facts, settings);
    for (size_t i = 0; i < ANSWERS; i++)
        tl_reply_free(answers[i]);
    if (body == NULL)
        return NULL;
    tl_object_set(&body, "queue", json_string(call->keys.queue));
    tl_object_set(&body, "reference", reference_of(call, visitor));
    return body;
}

json_t *tl_handle_visitor_get(struct tl_control_call *call)
{
    char visitor[TL_VISITOR_MAX + 1] = "";
    struct tl_queue_settings settings;
    if (!find(call, visitor) || !tl_queue_load(call->redis, &call->keys, &settings, &call->err))
        return NULL;
    return show(call, &settings, visitor);
}

json_t *tl_handle_visitor_find(struct tl_control_call *call)
{
    char visitor[TL_VISITOR_MAX + 1] = "";
    struct tl_queue_settings settings;
    const char *code = tl_target_parameter(&call->target, "reference");
    if (code == NULL)
        return tl_call_refuse(call, TL_REFUSAL_BAD_QUERY, "name the visitor by ?reference=");
    if (tl_queue_load(call->redis, &call->keys, &settings, &call->err) &&
        tl_reference_find(call->redis, &call->keys, call->config, code, visitor, &call->err))
        return show(call, &settings, visitor);
    if (call->err.kind == TL_OK)
        tl_call_refuse(
            call, TL_REFUSAL_NOT_FOUND,
            "nothing is known of a visitor with this code; ends are known for retention.ended");
    return NULL;
}

/* ---- changes ---- */

/* Calls a function with the visitor, another argument (NULL: none), and the actor. */
static struct tl_reply *run(struct tl_control_call *call, const char *function, const char *visitor,
                            const char *more)
{
    struct tl_args args = {0};
    tl_call_begin(&args, function, &call->keys);
    tl_args_strs(&args, TL_EVENTS_KEPT, visitor, more, NULL);
    tl_actor_append(call->request->actor, &args);
    return tl_call_once(call->redis, &args, &call->err);
}

/* Nothing was changed: the visitor has gone, as the record of the end says, or was never here. */
static json_t *refuse_absent(struct tl_control_call *call, const char *visitor, const char *record)
{
    struct tl_end_record end;
    char time[TL_UNITS_TEXT_MAX];
    if (!tl_record_end(record, &end))
        return tl_call_refuse(call, TL_REFUSAL_NOT_FOUND, "there is no visitor %s", visitor);
    tl_time_format(end.ended_ms, time, sizeof(time));
    return tl_call_refuse(call, TL_REFUSAL_CONFLICT,
                          "visitor %s is neither waiting nor active since %s%s", visitor, time,
                          end.reason == TL_REASON_REMOVED ? " (removed)" : "");
}

/* Removes the visitor of the path, who gets known. NULL: the call has failed. */
static struct tl_reply *remove_visitor(struct tl_control_call *call,
                                       char visitor[TL_VISITOR_MAX + 1])
{
    return tl_call_body(call, NULL) && find(call, visitor) ? run(call, TL_FN_REMOVE, visitor, NULL)
                                                           : NULL;
}

json_t *tl_handle_visitor_remove(struct tl_control_call *call)
{
    char visitor[TL_VISITOR_MAX + 1] = "";
    struct tl_reply *reply = remove_visitor(call, visitor);
    if (reply == NULL)
        return NULL;
    int64_t was = tl_reply_signed(reply, 0);
    json_t *body = was == TL_REMOVE_WAITING || was == TL_REMOVE_ACTIVE
                       ? json_pack("{s:s, s:s, s:s}", "queue", call->keys.queue, "visitor", visitor,
                                   "was", was == TL_REMOVE_WAITING ? "waiting" : "active")
                       : refuse_absent(call, visitor, tl_reply_text(reply, 1));
    tl_reply_free(reply);
    return body;
}

json_t *tl_handle_visitor_move(struct tl_control_call *call)
{
    char visitor[TL_VISITOR_MAX + 1] = "";
    char quoted[80];
    const char *lane = NULL;
    json_t *body = NULL;
    if (!tl_call_body(call, "lane", &lane, NULL) || !find(call, visitor))
        return NULL;
    struct tl_reply *reply = run(call, TL_FN_MOVE, visitor, lane);
    if (reply == NULL)
        return NULL;
    const char *text = tl_reply_text(reply, 1);
    switch (tl_reply_signed(reply, 0)) {
    case TL_MOVE_DONE:
    case TL_MOVE_THERE:
        body = json_pack("{s:s, s:s, s:s, s:s?}", "queue", call->keys.queue, "visitor", visitor,
                         "lane", lane, "was_in", *text != '\0' ? text : NULL);
        break;
    case TL_MOVE_NO_LANE:
        tl_quote(lane, quoted, sizeof(quoted));
        tl_call_refuse(call, TL_REFUSAL_INVALID, "%s is not one of the lanes", quoted);
        break;
    case TL_MOVE_ACTIVE:
        tl_call_refuse(call, TL_REFUSAL_CONFLICT, "visitor %s is active already", visitor);
        break;
    default:
        refuse_absent(call, visitor, text);
    }
    tl_reply_free(reply);
    return body;
}

/* ---- forgetting: erases the id wherever the store keeps it (docs/operators/privacy.md) ---- */

enum { NEXT_MAX = 64, NAME_BYTES = 8 };

/* It takes steps, each of which is bounded; one that fails half-way can be repeated. */
struct forgetting {
    struct tl_control_call *call;
    const char *visitor;
    char next[NEXT_MAX]; /* what follows, as the last step said; "": nothing */
    uint64_t places;     /* that held the id */
};

/* One step with these words, up to the first NULL; one may be `next`. False: the call has failed.
 */
static bool take_step(struct forgetting *self, const char *what, const char *more, const char *next,
                      const char *name)
{
    struct tl_args args = {0};
    tl_call_begin(&args, TL_FN_FORGET, &self->call->keys);
    tl_args_strs(&args, self->visitor, what, more, next, name, NULL);
    tl_actor_append(self->call->request->actor, &args);
    struct tl_reply *reply = tl_call_once(self->call->redis, &args, &self->call->err);
    if (reply == NULL)
        return false;
    self->places += tl_reply_number(reply, 0);
    snprintf(self->next, sizeof(self->next), "%s", tl_reply_text(reply, 1));
    tl_reply_free(reply);
    return true;
}

static bool forget_spent(struct forgetting *self)
{
    bool ok = true;
    snprintf(self->next, sizeof(self->next), "0");
    while (ok && self->next[0] != '\0')
        ok = take_step(self, "spent", self->next, NULL, NULL);
    return ok;
}

/* Copies the stream only when the visitor is in it. */
static bool forget_in_stream(struct forgetting *self, const char *stream)
{
    bool ok = true;
    self->next[0] = '\0';
    do
        ok = take_step(self, "look", stream, self->next, NULL);
    while (ok && self->next[0] != '\0' && strcmp(self->next, "found") != 0);
    if (!ok || self->next[0] == '\0')
        return ok;
    unsigned char bytes[NAME_BYTES];
    char name[2 * NAME_BYTES + 1];
    randombytes_buf(bytes, sizeof(bytes));
    sodium_bin2hex(name, sizeof(name), bytes, sizeof(bytes));
    self->next[0] = '\0';
    do
        ok = take_step(self, "copy", stream, self->next, name);
    while (ok && self->next[0] != '\0');
    return ok;
}

/* The record of changes says that it was done, without the id. */
static bool record_forgetting(struct forgetting *self)
{
    char places[24];
    snprintf(places, sizeof(places), "%" PRIu64, self->places);
    return take_step(self, "record", places, NULL, NULL);
}

json_t *tl_handle_visitor_forget(struct tl_control_call *call)
{
    char visitor[TL_VISITOR_MAX + 1] = "";
    struct tl_reply *reply = remove_visitor(call, visitor);
    if (reply == NULL)
        return NULL;
    tl_reply_free(reply);
    struct forgetting self = {.call = call, .visitor = visitor};
    /* The archive hears of it behind the changes: it may have copied them with the visitor. */
    if (!forget_spent(&self) || !forget_in_stream(&self, "journal") ||
        !forget_in_stream(&self, "changes") ||
        !take_step(&self, "sets", TL_EVENTS_KEPT, NULL, NULL) ||
        (self.places > 0 && !record_forgetting(&self)))
        return NULL;
    if (self.places == 0)
        return tl_call_refuse(call, TL_REFUSAL_NOT_FOUND, "nothing is kept of this visitor");
    return json_pack("{s:s, s:I}", "queue", call->keys.queue, "places", (json_int_t)self.places);
}
