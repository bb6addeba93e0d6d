/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>
#include <sodium.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/units.h"
#include "common/config/webhook_table.h"
#include "common/store/library.h"
#include "common/store/reply.h"
#include "common/wire/names.h"
#include "notifier/feed.h"

enum {
    BACKOFF_BASE_MS = 1000,
    BACKOFF_LIMIT_MS = 300000,
    BATCH_MS = 1000,     /* after a request: admissions are gathered this long */
    ENTRIES_MAX = 100,   /* read at once */
    VISITORS_MAX = 1000, /* in a body, and those of one more entry */
};

void tl_feed_init(struct tl_feed *feed, struct tl_webhook *webhook)
{
    *feed = (struct tl_feed){.webhook = webhook};
    tl_backoff_init(&feed->backoff, BACKOFF_BASE_MS, BACKOFF_LIMIT_MS);
}

void tl_feed_deinit(struct tl_feed *feed)
{
    tl_webhook_break_off(feed->webhook, &feed->post);
}

/* "ID N". False for what is no such text. */
static bool parse_cursor(const char *text, struct tl_cursor *cursor)
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

void tl_feed_place(struct tl_feed *feed, const char *text)
{
    struct tl_cursor cursor;
    if (feed->post != NULL || !parse_cursor(text, &cursor))
        return;
    feed->cursor = cursor;
    feed->placed = true;
}

/* ---- what the webhook is told in one request ---- */

/* One entry of the journal; texts are borrowed from the reply. */
struct entry {
    const char *id, *what, *data;
    uint64_t n;
    int64_t at_ms;
};

struct batch {
    json_t *list;           /* of events */
    struct tl_cursor until; /* as the feed's, when there was nothing */
    uint64_t events;        /* in the list */
    uint64_t lost;          /* entries trimmed, or too old */
    bool more;              /* there may be more */
};

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

static bool wants(const struct tl_webhook_config *webhook, const struct entry *entry)
{
    if (strcmp(entry->what, "test") == 0)
        return strcmp(entry->data, webhook->name) == 0;
    enum tl_webhook_event event = tl_webhook_event_find(entry->what);
    if (event == TL_WEBHOOK_EVENTS || !tl_webhook_wants(webhook, event))
        return false;
    /* Each threshold is a webhook's own. */
    char field[48];
    snprintf(field, sizeof(field), "\"threshold\":%" PRIu64 ",", webhook->threshold);
    return event != TL_WEBHOOK_THRESHOLD || strstr(entry->data, field) != NULL;
}

/* {"id", "queue", "type", "at"}; NULL when memory ran out. */
static json_t *make_event(const struct tl_feed_world *world, const char *id, const char *type,
                          int64_t at_ms)
{
    char full[TL_DELIVERY_ID_MAX];
    char at[TL_UNITS_TEXT_MAX];
    tl_time_format(at_ms, at, sizeof(at));
    snprintf(full, sizeof(full), "%s.%" PRIu64 ".%s", world->keys->queue, world->generation, id);
    return json_pack("{s:s, s:s, s:s, s:s}", "id", full, "queue", world->keys->queue, "type", type,
                     "at", at);
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
static bool add_entry(struct batch *batch, const struct tl_feed_world *world,
                      const struct entry *entry, size_t *visitors)
{
    json_t *event = make_event(world, entry->id, entry->what, entry->at_ms);
    bool ok = event != NULL;
    if (ok && strcmp(entry->what, tl_webhook_event_name(TL_WEBHOOK_ADMITTED)) == 0) {
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
    batch->events++;
    return json_array_append_new(batch->list, ok ? event : (json_decref(event), NULL)) == 0;
}

/* The entry that says how many were lost. */
static bool add_lost(struct batch *batch, const struct tl_feed_world *world, int64_t at_ms)
{
    char id[TL_CURSOR_ID_MAX + 16];
    snprintf(id, sizeof(id), "%s.lost", batch->until.id);
    json_t *event = make_event(world, id, "lost", at_ms);
    if (event != NULL &&
        json_object_set_new(event, "count", json_integer((json_int_t)batch->lost)) != 0) {
        json_decref(event);
        event = NULL;
    }
    batch->events++;
    return json_array_insert_new(batch->list, 0, event) == 0;
}

/* Takes the entries into the batch, until there are enough. False when memory ran out. */
static bool take(struct batch *batch, const struct tl_feed *feed, const struct tl_feed_world *world,
                 const struct tl_reply *reply)
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
        if (entry.at_ms < world->store_ms - world->kept_ms)
            continue; /* lost, as the number of the next one shows */
        if (entry.n > batch->until.n + 1)
            batch->lost += entry.n - batch->until.n - 1;
        batch->until.n = entry.n;
        at_ms = entry.at_ms;
        if (wants(feed->webhook->config, &entry))
            ok = add_entry(batch, world, &entry, &visitors);
    }
    batch->more = count == ENTRIES_MAX || i < count;
    return ok && (batch->lost == 0 || add_lost(batch, world, at_ms));
}

/* Reads the next entries, of a bounded number. The caller gives batch->list back, in any case. */
static bool read_batch(const struct tl_feed *feed, const struct tl_feed_world *world,
                       struct batch *batch, struct tl_error *err)
{
    struct tl_args *args = world->args;
    char key[TL_KEY_MAX];
    char start[TL_CURSOR_ID_MAX + 1];
    *batch = (struct batch){.list = json_array(), .until = feed->cursor};
    snprintf(start, sizeof(start), "(%s", feed->cursor.id);
    tl_args_reset(args);
    tl_args_strs(args, "XRANGE", tl_key(world->keys, TL_KEY_JOURNAL, key), start, "+", "COUNT",
                 NULL);
    tl_args_uint(args, ENTRIES_MAX);
    struct tl_reply *reply = tl_redis_call(world->redis, args, err);
    if (reply == NULL)
        return false;
    bool ok = batch->list != NULL && take(batch, feed, world, reply);
    tl_reply_free(reply);
    return ok || tl_error_set(err, TL_ERR_NOMEM, "no memory for the events of a webhook");
}

/* Begins to send the batch. */
static bool post(struct tl_feed *feed, const struct tl_feed_world *world, const struct batch *batch,
                 struct tl_error *err)
{
    char id[TL_DELIVERY_ID_MAX];
    snprintf(id, sizeof(id), "%s.%" PRIu64 ".%s_%s", world->keys->queue, world->generation,
             feed->cursor.id, batch->until.id);
    feed->sent_until = batch->until;
    feed->sent_events = batch->events;
    feed->sent_lost = batch->lost;
    feed->sent_all = !batch->more;
    feed->post = tl_webhook_post(feed->webhook, id, batch->list, err);
    return feed->post != NULL;
}

/* ---- what the store is told ---- */

/* What the store is to know. */
struct report {
    const struct tl_cursor *cursor; /* NULL: it stays */
    uint64_t told, lost;
    long status;
    const char *problem; /* "": none */
};

static bool report(struct tl_feed *feed, const struct tl_feed_world *world,
                   const struct report *said, struct tl_error *err)
{
    struct tl_args *args = world->args;
    char cursor[TL_CURSOR_ID_MAX + 24] = "";
    if (said->cursor != NULL)
        snprintf(cursor, sizeof(cursor), "%s %" PRIu64, said->cursor->id, said->cursor->n);
    tl_call_begin(args, TL_FN_TOLD, world->keys);
    tl_args_strs(args, feed->webhook->config->name, cursor, NULL);
    tl_args_uint(args, said->told);
    tl_args_uint(args, said->lost);
    tl_args_int(args, said->status);
    tl_args_str(args, said->problem);
    struct tl_reply *reply = tl_call(world->redis, args, err);
    if (reply == NULL)
        return false;
    int64_t store_ms = tl_reply_signed(reply, 0);
    int64_t since_ms = tl_reply_signed(reply, 1);
    tl_reply_free(reply);
    feed->failing_since_ms = since_ms > 0 ? tl_clock_ms() - (store_ms - since_ms) : 0;
    if (said->cursor != NULL)
        feed->cursor = *said->cursor;
    struct tl_metrics *metrics = feed->webhook->metrics;
    tl_metrics_add(metrics, TL_NOTIFIER_TOLD, (int64_t)said->told);
    tl_metrics_add(metrics, TL_NOTIFIER_LOST, (int64_t)said->lost);
    if (said->lost > 0)
        tl_log(TL_LOG_WARN, &(struct tl_log_fields){.queue = world->keys->queue},
               "%" PRIu64 " events are lost to webhook %s, which did not answer for too long",
               said->lost, feed->webhook->config->name);
    return true;
}

/* The text of a stranger: only what every terminal and JSON can show. */
static void make_printable(char *text)
{
    for (; *text != '\0'; text++)
        if (*text < ' ' || *text > '~')
            *text = '?';
}

/* The request under way is over, or none is. */
static bool settle(struct tl_feed *feed, const struct tl_feed_world *world, int64_t now_ms,
                   struct tl_error *err)
{
    struct tl_post_result result;
    if (!tl_webhook_result(feed->webhook, &feed->post, now_ms, &result))
        return true;
    make_printable(result.problem);
    struct report said = {.status = result.status, .problem = result.problem};
    if (result.accepted) {
        said.cursor = &feed->sent_until;
        said.told = feed->sent_events;
        said.lost = feed->sent_lost;
        tl_backoff_reset(&feed->backoff);
        feed->due_ms = feed->sent_all ? now_ms + BATCH_MS : now_ms;
    } else {
        feed->due_ms = now_ms + tl_backoff_next(&feed->backoff, randombytes_random());
    }
    return report(feed, world, &said, err);
}

static bool tell(struct tl_feed *feed, const struct tl_feed_world *world, int64_t now_ms,
                 struct tl_error *err)
{
    struct batch batch;
    bool ok = read_batch(feed, world, &batch, err);
    if (ok && batch.events > 0) {
        ok = post(feed, world, &batch, err);
    } else if (ok && strcmp(batch.until.id, feed->cursor.id) != 0) { /* nothing for this webhook */
        ok = report(feed, world, &(struct report){.cursor = &batch.until, .problem = ""}, err);
        feed->due_ms = batch.more ? now_ms : now_ms + BATCH_MS;
    } else if (ok) { /* the journal is gone, or was trimmed to its end */
        feed->due_ms = now_ms + BATCH_MS;
    }
    json_decref(batch.list);
    return ok;
}

bool tl_feed_serve(struct tl_feed *feed, const struct tl_feed_world *world, int64_t now_ms,
                   int64_t *due_ms, struct tl_error *err)
{
    if (!settle(feed, world, now_ms, err))
        return false;
    bool wanted = feed->placed && feed->post == NULL && feed->cursor.n != world->journaled;
    if (wanted && now_ms >= feed->due_ms && feed->webhook->under_way < TL_WEBHOOK_POSTS_MAX &&
        !tell(feed, world, now_ms, err))
        return false;
    if (wanted && feed->post == NULL && feed->due_ms < *due_ms)
        *due_ms = feed->due_ms;
    return true;
}
