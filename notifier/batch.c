/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "common/config/hook_table.h"
#include "common/store/reply.h"
#include "common/wire/names.h"
#include "notifier/batch.h"

enum {
    ENTRIES_MAX = 100,   /* read at once */
    VISITORS_MAX = 1000, /* in a body, and those of one more entry */
};

/* One entry of the journal; texts are borrowed from the reply. */
struct entry {
    const char *id, *what, *data;
    uint64_t n;
    int64_t at_ms;
};

bool tl_cursor_parse(const char *text, struct tl_cursor *cursor)
{
    const char *space = strchr(text, ' ');
    char *end = NULL;
    if (space == NULL || space == text || (size_t)(space - text) >= sizeof(cursor->id) ||
        strspn(text, "0123456789-") != (size_t)(space - text))
        return false;
    memcpy(cursor->id, text, (size_t)(space - text));
    cursor->id[space - text] = '\0';
    cursor->n = strtoull(space + 1, &end, 10);
    return end != space + 1 && *end == '\0';
}

static bool read_entry(const struct tl_reply *reply, struct entry *entry)
{
    const struct tl_reply *fields = tl_reply_at(reply, 1);
    *entry = (struct entry){.id = tl_reply_text(reply, 0), .what = "", .data = ""};
    for (size_t i = 0; i + 1 < tl_reply_count(fields); i += 2) {
        const char *name = tl_reply_text(fields, i);
        const struct tl_reply *value = tl_reply_at(fields, i + 1);
        if (strcmp(name, "n") == 0)
            entry->n = (uint64_t)tl_reply_integer(value);
        else if (strcmp(name, "at") == 0)
            entry->at_ms = tl_reply_integer(value);
        else if (strcmp(name, "what") == 0)
            entry->what = tl_reply_string(value, NULL);
        else if (strcmp(name, "data") == 0)
            entry->data = tl_reply_string(value, NULL);
    }
    return strlen(entry->id) < TL_CURSOR_ID_MAX;
}

static bool wants(const struct tl_hook_config *hook, const struct entry *entry)
{
    if (strcmp(entry->what, "test") == 0)
        return strcmp(entry->data, hook->name) == 0;
    enum tl_hook_event event = tl_hook_event_find(entry->what);
    if (event == TL_HOOK_EVENTS || !tl_hook_wants(hook, event))
        return false;
    /* Each threshold is a hook's own. */
    char field[48];
    snprintf(field, sizeof(field), "\"threshold\":%" PRIu64 ",", hook->threshold);
    return event != TL_HOOK_THRESHOLD || strstr(entry->data, field) != NULL;
}

/* {"id", "queue", "type", "at_ms"}; NULL when memory ran out. */
static json_t *make_event(const struct tl_batch_wish *wish, const char *id, const char *type,
                          int64_t at_ms)
{
    char full[TL_DELIVERY_ID_MAX];
    snprintf(full, sizeof(full), "%s.%" PRIu64 ".%s", wish->keys->queue, wish->generation, id);
    return json_pack("{s:s, s:s, s:s, s:I}", "id", full, "queue", wish->keys->queue, "type", type,
                     "at_ms", (json_int_t)at_ms);
}

/* The ids in the text, which are separated by spaces. */
static json_t *list_visitors(const char *text, size_t *n)
{
    json_t *visitors = json_array();
    for (const char *at = text; visitors != NULL && *at != '\0';) {
        size_t length = strcspn(at, " ");
        bool valid = tl_visitor_valid(at, length); /* else it is damaged, and left out */
        if (valid && json_array_append_new(visitors, json_stringn(at, length)) != 0) {
            json_decref(visitors);
            return NULL;
        }
        *n += valid;
        at += length + strspn(at + length, " ");
    }
    return visitors;
}

/* Adds the entry; *visitors counts those it names. False when memory ran out. */
static bool add_entry(json_t *events, const struct tl_batch_wish *wish, const struct entry *entry,
                      size_t *visitors)
{
    json_t *event = make_event(wish, entry->id, entry->what, entry->at_ms);
    bool ok = event != NULL;
    if (ok && strcmp(entry->what, tl_hook_event_name(TL_HOOK_ADMITTED)) == 0) {
        ok = json_object_set_new(event, "visitors", list_visitors(entry->data, visitors)) == 0;
    } else if (ok && entry->data[0] == '{') {
        json_error_t error;
        json_t *more = json_loads(entry->data, 0, &error);
        if (more != NULL) /* else it is damaged, and the rest is told without it */
            ok = json_object_update_missing(event, more) == 0;
        else
            ok = json_error_code(&error) != json_error_out_of_memory;
        json_decref(more);
    }
    return json_array_append_new(events, ok ? event : (json_decref(event), NULL)) == 0;
}

/* The entry that says how many were lost. */
static bool add_lost(json_t *events, const struct tl_batch_wish *wish, struct tl_hook_batch *batch,
                     int64_t at_ms)
{
    char id[TL_CURSOR_ID_MAX + 16];
    snprintf(id, sizeof(id), "%s.lost", batch->until.id);
    json_t *event = make_event(wish, id, "lost", at_ms);
    if (event != NULL &&
        json_object_set_new(event, "count", json_integer((json_int_t)batch->lost)) != 0) {
        json_decref(event);
        event = NULL;
    }
    batch->events++;
    return json_array_insert_new(events, 0, event) == 0;
}

/* Takes the entries into *events, until there are enough. False when memory ran out. */
static bool take(const struct tl_reply *reply, const struct tl_batch_wish *wish,
                 struct tl_hook_batch *batch, json_t *events)
{
    size_t count = tl_reply_count(reply);
    size_t visitors = 0;
    size_t i = 0;
    int64_t at_ms = 0;
    bool ok = true;
    for (; ok && i < count && visitors < VISITORS_MAX; i++) {
        struct entry entry;
        if (!read_entry(tl_reply_at(reply, i), &entry))
            continue;
        snprintf(batch->until.id, sizeof(batch->until.id), "%s", entry.id);
        if (entry.at_ms < wish->oldest_ms)
            continue; /* lost, as the number of the next one shows */
        if (entry.n > batch->until.n + 1)
            batch->lost += entry.n - batch->until.n - 1;
        batch->until.n = entry.n;
        at_ms = entry.at_ms;
        if (wants(wish->hook, &entry)) {
            ok = add_entry(events, wish, &entry, &visitors);
            batch->events++;
        }
    }
    batch->more = count == ENTRIES_MAX || i < count;
    return ok && (batch->lost == 0 || add_lost(events, wish, batch, at_ms));
}

static bool write_body(const struct tl_batch_wish *wish, struct tl_hook_batch *batch,
                       json_t *events)
{
    snprintf(batch->id, sizeof(batch->id), "%s.%" PRIu64 ".%s_%s", wish->keys->queue,
             wish->generation, wish->from.id, batch->until.id);
    json_t *body =
        json_pack("{s:s, s:s, s:O}", "id", batch->id, "hook", wish->hook->name, "events", events);
    batch->body = body != NULL ? json_dumps(body, JSON_COMPACT) : NULL;
    json_decref(body);
    if (batch->body != NULL)
        batch->length = strlen(batch->body);
    return batch->body != NULL;
}

bool tl_hook_batch_read(struct tl_redis *redis, const struct tl_batch_wish *wish,
                        struct tl_hook_batch *batch, struct tl_error *err)
{
    char key[TL_KEY_MAX];
    char start[TL_CURSOR_ID_MAX + 1];
    struct tl_args args = {0};
    *batch = (struct tl_hook_batch){.until = wish->from};
    snprintf(start, sizeof(start), "(%s", wish->from.id);
    tl_args_strs(&args, "XRANGE", tl_key(wish->keys, TL_KEY_JOURNAL, key), start, "+", "COUNT",
                 NULL);
    tl_args_uint(&args, ENTRIES_MAX);
    struct tl_reply *reply = tl_redis_call(redis, &args, err);
    tl_args_free(&args);
    if (reply == NULL)
        return false;
    json_t *events = json_array();
    bool ok = events != NULL && take(reply, wish, batch, events) &&
              (batch->events == 0 || write_body(wish, batch, events));
    json_decref(events);
    tl_reply_free(reply);
    return ok || tl_error_set(err, TL_ERR_NOMEM, "no memory for what a hook is told");
}
