/* SPDX-License-Identifier: Apache-2.0 */
/* A call under way: what the handlers work with, and what they have in common. Private: outside of
 * this folder only tests include it. */
#ifndef TL_CONTROL_CALL_H
#define TL_CONTROL_CALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "common/base/error.h"
#include "common/base/text.h"
#include "common/config/settings.h"
#include "common/control/control.h"
#include "common/store/durable.h"
#include "common/store/keys.h"
#include "common/store/library.h"
#include "common/store/queue.h"
#include "common/store/records.h"
#include "common/store/redis.h"
#include "common/store/reply.h"
#include "common/store/store.h"
#include "common/wire/names.h"
#include "common/wire/place.h"

struct tl_control {
    const struct tl_config *config; /* borrowed */
    struct tl_store *store;
    char writer[TL_WORKER_ID_MAX + 1]; /* names the batches of bulk joins */
    uint64_t batches;                  /* the number of the last one */
    struct tl_durable durable;
};

struct tl_control_call {
    struct tl_control *control;
    const struct tl_config *config; /* that of control */
    const struct tl_control_request *request;
    struct tl_control_answer *answer; /* a handler only refuses, and sets the ETag */
    const struct tl_control_route *route;
    struct tl_target target;
    const char *name;       /* {visitor} or {name} of the path; else NULL */
    struct tl_keys keys;    /* of {queue}; else without a name */
    struct tl_redis *redis; /* the connection of the queue, or that of no queue: open */
    int status;             /* of the answer, if the handler succeeds; 200 at first */
    struct tl_error err;    /* why it failed */
};

/*
 * A handler (struct tl_control_route) returns the body of its answer, whose status is call->status.
 * NULL: it has refused the call; or call->err says what failed, which is answered as by
 * tl_control_problem_of; or neither: out of memory.
 */

/* Refuses the call: as tl_control_problem, with the kind and what printf takes. */
#define tl_call_refuse(call, ...) tl_control_problem((call)->answer, __VA_ARGS__)

/* Finds the route of the request, checks the query, fills in what the path names, and opens the
 * connection. False: the call is refused. */
bool tl_call_prepare(struct tl_control_call *call);
/* Refuses the call as invalid, with a list of what is wrong: [{"name", "detail"}...]. */
void *tl_call_refuse_listed(struct tl_control_call *call, json_t *errors, const char *detail);
/* The keys of a queue; TL_ERR_INVALID when that is no valid name. */
bool tl_call_keys(const struct tl_control *control, const char *queue, struct tl_keys *keys,
                  struct tl_error *err);

/*
 * Reads the members of the body; no body is an empty one. The arguments are names, each with where
 * to put its value (borrowed), and NULL:
 *   "name"   a text, const char **
 *   "name?"  one that may be missing; then nothing is put
 *   "name#"  seconds, a whole number, int64_t *, or null or missing; then nothing is put
 *   "name*"  a value of any type, const json_t **; NULL when it is missing
 * False: one is missing or of another type, or the body has another; the call is refused.
 */
bool tl_call_body(struct tl_control_call *call, ...) __attribute__((sentinel));
/* ---- pages of a list: ?limit= and ?starting_after=, answered with `has_more` ---- */

struct tl_list_page {
    uint64_t limit;    /* 100 unless it is said, at most TL_CONTROL_PAGE_MAX */
    const char *after; /* the key of the last entry before the page; NULL: it is the first page */
    uint64_t n;        /* entries taken */
    bool has_more;
};

/* False: the query is refused. */
bool tl_list_page_read(struct tl_control_call *call, struct tl_list_page *page);
/* Does the next entry, by the order of the keys, belong to the page? In a key of several parts, '/'
 * and the space between them are before any other character. */
bool tl_list_page_takes(struct tl_list_page *page, const char *key);
/* The body of the answer: the list, which is taken, under its name. is_whole: it has all entries of
 * the page; false: NULL, as of a list that is NULL. */
json_t *tl_list_page_to_json(const struct tl_list_page *page, bool is_whole, const char *name,
                             json_t *list);

/* Is the word in the list, in which it may be separated by any of these characters? */
bool tl_call_has_word(const char *list, const char *separators, const char *word);
/* A whole number of the query. *number stays as it is where there is no such parameter. */
bool tl_call_number(struct tl_control_call *call, const char *name, uint64_t least, uint64_t most,
                    uint64_t *number);

/* ---- values as JSON (json.c) ---- */

/* Append to a list, and set a member of an object. They take the value. Where it is NULL, or memory
 * runs out, *list or *object is freed and becomes NULL, and stays so. */
void tl_list_add(json_t **list, json_t *value);
void tl_object_set(json_t **object, const char *name, json_t *value);
/* The node of a Redis Cluster that a connection leads to; JSON null without a cluster. */
json_t *tl_call_node(const struct tl_redis *redis);
/* RFC 3339 in UTC; JSON null for 0. NULL: out of memory. */
json_t *tl_call_time(int64_t unix_ms);

/* What is known of a visitor; what does not apply is 0 or NULL. */
struct tl_visitor_facts {
    const char *visitor;
    const char *status;     /* "waiting", "active", or how it ended: "completed", "removed" */
    const char *end_reason; /* the same in more detail: "unclaimed" */
    bool has_place;
    tl_place place;
    uint64_t position;
    int64_t joined_ms, admitted_ms, expires_ms, ended_ms;
    int claimed; /* -1: does not apply */
};
/* Sets the status and the rest of a visitor with a session, whose record and deadline these texts
 * of the store are. False: that is no record. */
bool tl_visitor_active(struct tl_visitor_facts *facts, const char *session, const char *deadline);
/* The same of a visitor who has gone. */
void tl_visitor_ended(struct tl_visitor_facts *facts, const struct tl_end_record *end);
/* All members, null where they do not apply. NULL: out of memory. */
json_t *tl_visitor_to_json(const struct tl_visitor_facts *facts,
                           const struct tl_queue_settings *settings);
/* The name of the place's lane; "" for a lane that the queue has no longer. */
const char *tl_place_lane_name(const struct tl_queue_settings *settings, tl_place place);
/* Sets the members `lane` and `seq`, as tl_object_set. place NULL: there is none. */
void tl_place_to_json(json_t **object, const struct tl_queue_settings *settings,
                      const tl_place *place);
/* A notice as the calls show and take it: `notice` is what a visitor of another language reads,
 * `notices` the text of each language. Sets both members, as tl_object_set; `notices` is null for
 * one text for everyone. */
void tl_notice_to_json(json_t **object, const char *notice, size_t length);
/* The notice alone: a text for everyone, or an object with that of each language. NULL: out of
 * memory. */
json_t *tl_notice_value(const char *notice, size_t length);
/* The notice that an object {"en": "...", "ko": "..."} makes, in the order of its members. Sets
 * TL_ERR_INVALID for anything else. */
bool tl_notice_of_json(const json_t *texts, struct tl_text *notice, struct tl_error *err);

/* ---- the handlers; docs/integrators/openapi-admin.yaml says what each takes and answers ---- */

tl_control_handler tl_handle_queue_list, tl_handle_queue_create, tl_handle_queue_get,
    tl_handle_queue_put, tl_handle_queue_patch, tl_handle_queue_delete;
tl_control_handler tl_handle_mode, tl_handle_notice, tl_handle_recover; /* the mode of the route */
tl_control_handler tl_handle_draw_get, tl_handle_draw_set;
tl_control_handler tl_handle_stats, tl_handle_history;
tl_control_handler tl_handle_line, tl_handle_joins;
tl_control_handler tl_handle_visitor_get, tl_handle_visitor_find, tl_handle_visitor_remove,
    tl_handle_visitor_forget, tl_handle_visitor_move;
tl_control_handler tl_handle_webhook_list, tl_handle_queue_webhooks, tl_handle_webhook_test;
tl_control_handler tl_handle_changes;
tl_control_handler tl_handle_token_list, tl_handle_token_create, tl_handle_token_revoke;
tl_control_handler tl_handle_block_list, tl_handle_block_create, tl_handle_block_delete;

/* ---- what a topic offers the others ---- */

/* queues.c */

/* Changes settings of the call's queue, all or none, unless If-Match names others than the present
 * ones. Returns the body of the answer: the queue as it is now, with what it was and is in
 * `changed`. */
json_t *tl_resource_change(struct tl_control_call *call, const struct tl_queue_changes *changes);
/* Is the queue on the list of queues (tl:queues)? */
bool tl_queue_listed(struct tl_control *control, const char *queue, bool *listed,
                     struct tl_error *err);

/* repeat.c */

/* Idempotency-Key: a call that is sent again with the same key is answered with the first answer.
 * Kept for a day in tl:{q}:idempotent, of the last 1000 calls of a queue (idempotent.lua). Performs
 * the call, which then has its answer, unless its key was used before: then answers as before, with
 * 422 when it was another request, and with 409 while the first one is still under way. A failure
 * here (500 and above) is not kept. An answer above 16 KiB is not kept either: then the handler
 * is called again, which only joins in bulk reach; joining again gives the places that are held. */
void tl_repeat_once(struct tl_control_call *call, void (*perform)(struct tl_control_call *call));

/* stats.c */

/* The body of GET /v1/admin/queues/{queue}/stats without what is said of the store itself, for
 * lists: one bounded read. NULL with TL_ERR_NOQUEUE, TL_ERR_INVALID (the name), or what the store
 * says. The caller owns it. */
json_t *tl_control_stats_of(struct tl_control *control, const char *queue, struct tl_error *err);

/* webhooks.c */

/* The webhooks of a queue as a list of objects, by name, from an answer WEBHOOKS: those that the
 * notifier keeps, and those of this program's configuration that no notifier knows yet. NULL: out
 * of memory. */
json_t *tl_webhooks_to_json(const struct tl_config *config, const char *queue,
                            const struct tl_reply *reply);

/* reference.c: the visitor behind a reference code (common/auth/reference.h) */

/* Looks for the visitor with this code, by any of the ticket keys: through the line, the sessions
 * and the ends that are known, a thousand in each command. False without an error: nothing is known
 * of such a visitor. TL_ERR_INVALID: the text is no code, or the keys cannot be read. */
bool tl_reference_find(struct tl_redis *redis, const struct tl_keys *keys,
                       const struct tl_config *config, const char *code,
                       char visitor[TL_VISITOR_MAX + 1], struct tl_error *err);

/* line.c */

/* Sets when those joined who have a place: when it got its number. Nothing keeps it for each place;
 * the history of the queue tells it, to 10 s for a day and to a minute for a week. 0: not known,
 * because the history begins later. Places of a draw: when it numbered them. */
bool tl_joined_fill(struct tl_visitor_facts *list, size_t n, struct tl_control *control,
                    const struct tl_keys *keys, struct tl_error *err);

/* history.c */

/*
 * The history of a queue, which graphs show: its numbers every 10 s for a day and every minute for
 * a week, as the expirer notes them (expirer/history.lua). While nothing changes there is a point
 * every ten minutes only: a point holds until the next one.
 */
struct tl_history_span {
    bool minutes;           /* the points of minutes, not of 10 s */
    int64_t from_ms, to_ms; /* Unix time by the store's clock */
    size_t most;            /* of these points at most: the latest */
};

/* The points of this span, oldest first, and before them the one that holds at its beginning, if
 * there is one. Each is [at, mode, value...], with the values of the fields HISTORY of
 * protocol.def; 0 for what a point lacks. NULL with err. */
json_t *tl_history_points(struct tl_redis *redis, const struct tl_keys *keys,
                          const struct tl_history_span *span, struct tl_error *err);

/* changes.c */

/*
 * The record of changes: who changed what, when and from where. The function that changes something
 * writes the entry in the same step (common/store/line/changes.lua), to tl:{q}:changes, or to
 * tl:changes what belongs to no queue. docs/contributors/wire-format.md describes both streams.
 */
struct tl_changes_query {
    const char *queue;  /* of this queue only; NULL: of all queues, and of none */
    const char *before; /* only older than this id; NULL: from the newest on */
    size_t limit;       /* 1 at least */
};

/* Reads the changes, newest first. Of all queues: those in tl:queues, and tl:changes, which has
 * those of queues that are gone; merged by time. Memory is bounded by the limit. Each is an object
 * with the fields of its entry, and its id; `queue` is "" for one of no queue. NULL with err:
 * TL_ERR_INVALID for a `before` that is no id. An unknown queue has no
 * changes. */
json_t *tl_changes_list(struct tl_store *store, const char *key_prefix,
                        const struct tl_changes_query *query, struct tl_error *err);

#endif
