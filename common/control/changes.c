/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/control/call.h"
#include "common/control/settings_json.h"

/* Entries of tl:changes read at once when most of them may be of other queues. */
enum { PAGE = 100 };

/* ---- where an entry stands: by time, newest first; at the same time by the stream's queue ---- */

struct position {
    uint64_t ms, seq;
    char queue[TL_QUEUE_NAME_MAX + 1]; /* of the stream tl:{q}:changes; "": tl:changes */
};

/* "MS-SEQ", the id of an entry, or "MS-SEQ:QUEUE". */
static bool parse_position(const char *text, struct position *position)
{
    char stop = strchr(text, ':') != NULL ? ':' : '\0';
    *position = (struct position){0};
    if (!tl_record_number(&text, '-', &position->ms) ||
        !tl_record_number(&text, stop, &position->seq))
        return false;
    snprintf(position->queue, sizeof(position->queue), "%s", text);
    return stop == '\0' || tl_queue_name_valid(text, strlen(text));
}

/* Negative: a comes before b, as it is newer. */
static int compare(const struct position *a, const struct position *b)
{
    if (a->ms != b->ms)
        return a->ms > b->ms ? -1 : 1;
    if (a->seq != b->seq)
        return a->seq > b->seq ? -1 : 1;
    return strcmp(a->queue, b->queue);
}

/* ---- the newest entries of all streams, at most `limit` ---- */

struct entry {
    struct position position;
    json_t *change;
};

struct reading {
    struct tl_store *store;
    const char *key_prefix;
    struct position before; /* only what is older */
    size_t n, limit;
    struct entry *list; /* newest first */
};

static json_t *change_of(const struct position *position, const struct tl_reply *fields)
{
    static const char *const names[] = {"who", "from", "what", "before", "after"};
    char id[TL_CHANGES_ID_MAX + 1];
    bool of_queue = position->queue[0] != '\0';
    const char *queue =
        of_queue ? position->queue : tl_reply_string(tl_reply_of(fields, "queue"), NULL);
    snprintf(id, sizeof(id), "%" PRIu64 "-%" PRIu64 "%s%s", position->ms, position->seq,
             of_queue ? ":" : "", position->queue);
    json_t *change = json_pack("{s:s, s:s, s:I}", "id", id, "queue", queue, "at",
                               (json_int_t)tl_reply_integer(tl_reply_of(fields, "at")));
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *text = tl_reply_string(tl_reply_of(fields, names[i]), NULL);
        tl_object_set(&change, names[i], json_string_nocheck(text));
    }
    return change;
}

/* Puts the entry where it belongs; the oldest gives way. */
static bool insert(struct reading *self, const struct position *position,
                   const struct tl_reply *fields, struct tl_error *err)
{
    const struct entry entry = {.position = *position, .change = change_of(position, fields)};
    if (entry.change == NULL)
        return tl_error_set(err, TL_ERR_NOMEM, "no memory for the changes");
    if (self->n == self->limit)
        json_decref(self->list[--self->n].change);
    size_t at = self->n;
    while (at > 0 && compare(position, &self->list[at - 1].position) < 0)
        at--;
    memmove(&self->list[at + 1], &self->list[at], (self->n - at) * sizeof(entry));
    self->list[at] = entry;
    self->n++;
    return true;
}

/* ---- reading a stream ---- */

struct source {
    const char *key;
    const char *queue; /* of the stream; "": tl:changes */
    const char *only;  /* entries of tl:changes that concern this queue; NULL: all */
};

/* Reads the next page behind *position, which may be of another stream, and moves it on; *more is
 * false when that was all. */
static bool read_page(struct reading *self, const struct source *source, struct position *position,
                      bool *more, struct tl_error *err)
{
    char start[48], count[24];
    size_t page = source->only != NULL || self->limit > PAGE ? PAGE : self->limit;
    snprintf(start, sizeof(start), "%s%" PRIu64 "-%" PRIu64,
             strcmp(source->queue, position->queue) <= 0 ? "(" : "", position->ms, position->seq);
    snprintf(count, sizeof(count), "%zu", page);
    struct tl_redis *redis =
        tl_store_reach(self->store, source->queue[0] != '\0' ? source->queue : NULL, err);
    struct tl_reply *reply = redis != NULL ? tl_ask(redis, err, "XREVRANGE", source->key, start,
                                                    "-", "COUNT", count, NULL)
                                           : NULL;
    bool ok = reply != NULL;
    *more = tl_reply_count(reply) == page;
    for (size_t i = 0; ok && i < tl_reply_count(reply); i++) {
        const struct tl_reply *entry = tl_reply_at(reply, i);
        const struct tl_reply *fields = tl_reply_at(entry, 1);
        bool has_id = parse_position(tl_reply_text(entry, 0), position);
        snprintf(position->queue, sizeof(position->queue), "%s", source->queue);
        if (!has_id) {
            ok = tl_error_set(err, TL_ERR_PROTOCOL, "%s: an entry without an id", source->key);
        } else if (self->n == self->limit &&
                   compare(position, &self->list[self->n - 1].position) >= 0) {
            *more = false;
            break;
        } else if (source->only == NULL ||
                   strcmp(tl_reply_string(tl_reply_of(fields, "queue"), NULL), source->only) == 0) {
            ok = insert(self, position, fields, err);
        }
    }
    tl_reply_free(reply);
    return ok;
}

static bool read_stream(struct reading *self, const struct source *source, struct tl_error *err)
{
    struct position position = self->before;
    bool more = true, ok = true;
    while (ok && more)
        ok = read_page(self, source, &position, &more, err);
    return ok;
}

static bool read_queue(struct reading *self, const char *queue, struct tl_error *err)
{
    char key[TL_KEY_MAX];
    struct tl_keys keys;
    tl_keys_init(&keys, self->key_prefix, queue);
    const struct source source = {.key = tl_key(&keys, TL_KEY_CHANGES, key), .queue = queue};
    return read_stream(self, &source, err);
}

static bool read_all(struct reading *self, struct tl_error *err)
{
    char(*names)[TL_QUEUE_NAME_MAX + 1];
    size_t n;
    if (!tl_queue_list(tl_store_common(self->store), self->key_prefix, &names, &n, err))
        return false;
    bool ok = true;
    for (size_t i = 0; ok && i < n; i++)
        ok = read_queue(self, names[i], err);
    free(names);
    return ok;
}

/* False for a question that makes no sense. *before gets where to begin, unless it is not said. */
static bool check(const struct tl_changes_query *query, struct position *before,
                  struct tl_error *err)
{
    if (query->before != NULL && !parse_position(query->before, before))
        return tl_error_set(
            err, TL_ERR_INVALID,
            "starting_after must be the id of a change, as in 1732320000000-0:sale");
    return query->queue == NULL || tl_queue_name_valid(query->queue, strlen(query->queue)) ||
           tl_error_set(err, TL_ERR_INVALID, "that is not a valid queue name");
}

json_t *tl_changes_list(struct tl_store *store, const char *key_prefix,
                        const struct tl_changes_query *query, struct tl_error *err)
{
    char key[TL_KEY_MAX];
    struct reading self = {.store = store,
                           .key_prefix = key_prefix,
                           .before = {.ms = UINT64_MAX, .seq = UINT64_MAX},
                           .limit = query->limit};
    if (!check(query, &self.before, err))
        return NULL;
    self.list = calloc(query->limit, sizeof(*self.list));
    if (self.list == NULL) {
        tl_error_set(err, TL_ERR_NOMEM, "no memory for %zu changes", query->limit);
        return NULL;
    }
    const struct source of_none = {.key = tl_key_common(key_prefix, TL_COMMON_CHANGES, key),
                                   .queue = "",
                                   .only = query->queue};
    bool ok = read_stream(&self, &of_none, err) &&
              (query->queue != NULL ? read_queue(&self, query->queue, err) : read_all(&self, err));
    json_t *list = json_array();
    for (size_t i = 0; i < self.n; i++)
        tl_list_add(&list, self.list[i].change);
    free(self.list);
    if (ok && list != NULL)
        return list;
    json_decref(list);
    if (ok)
        tl_error_set(err, TL_ERR_NOMEM, "no memory for the changes");
    return NULL;
}

/* ---- the call ---- */

/* Puts words that people read in the place of those that the store keeps. */
static bool show(json_t *change)
{
    const char *before = json_string_value(json_object_get(change, "before"));
    const char *after = json_string_value(json_object_get(change, "after"));
    json_t *at = tl_call_time(json_integer_value(json_object_get(change, "at")));
    bool of_queue = json_string_length(json_object_get(change, "queue")) > 0;
    return json_object_set_new(change, "at", at) == 0 &&
           json_object_set_new(change, "before", tl_settings_record_to_json(before)) == 0 &&
           json_object_set_new(change, "after", tl_settings_record_to_json(after)) == 0 &&
           (of_queue || json_object_set_new(change, "queue", json_null()) == 0);
}

json_t *tl_handle_changes(struct tl_control_call *call)
{
    struct tl_keys keys;
    const struct tl_config *config = call->config;
    struct tl_list_page page;
    const char *queue = tl_target_parameter(&call->target, "queue");
    if (!tl_list_page_read(call, &page))
        return NULL;
    const struct tl_changes_query query = {
        .queue = queue, .before = page.after, .limit = (size_t)page.limit + 1};
    json_t *list = NULL;
    if (queue == NULL || tl_call_keys(call->control, queue, &keys, &call->err))
        list = tl_changes_list(call->control->store, config->redis.key_prefix, &query, &call->err);
    if (list == NULL && call->err.kind == TL_ERR_INVALID) /* of the query */
        return tl_call_refuse(call, TL_REFUSAL_BAD_QUERY, "%s", call->err.text);
    bool has_more = json_array_size(list) > page.limit;
    if (has_more)
        (void)json_array_remove(list, (size_t)page.limit);
    for (size_t i = 0; i < json_array_size(list); i++)
        if (!show(json_array_get(list, i))) {
            json_decref(list);
            return NULL;
        }
    return list != NULL ? json_pack("{s:o, s:b}", "changes", list, "has_more", has_more) : NULL;
}
