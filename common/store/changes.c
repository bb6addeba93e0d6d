/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/text.h"
#include "common/store/changes.h"
#include "common/store/queue.h"
#include "common/store/records.h"
#include "common/store/reply.h"

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
    struct tl_text texts; /* those of `change`, each with its zero */
    struct tl_changes_entry change;
};

struct reading {
    struct tl_redis *redis;
    const char *key_prefix;
    struct position before; /* only what is older */
    size_t n, limit;
    struct entry *list; /* newest first */
};

static bool copy_texts(struct entry *entry, const struct tl_reply *fields)
{
    static const char *const names[] = {"queue", "who", "from", "what", "before", "after"};
    enum { TEXTS = sizeof(names) / sizeof(names[0]) };
    struct tl_changes_entry *change = &entry->change;
    const char **const members[TEXTS] = {&change->queue, &change->who,    &change->from,
                                         &change->what,  &change->before, &change->after};
    size_t begins[TEXTS];
    for (size_t i = 0; i < TEXTS; i++) {
        const char *text = tl_reply_string(tl_reply_of(fields, names[i]), NULL);
        begins[i] = entry->texts.length;
        tl_text_append(&entry->texts, "%s%c", text, '\0');
    }
    for (size_t i = 0; i < TEXTS && !entry->texts.failed; i++)
        *members[i] = entry->texts.data + begins[i];
    return !entry->texts.failed;
}

/* Puts the entry where it belongs; the oldest gives way. */
static bool insert(struct reading *self, const struct position *position,
                   const struct tl_reply *fields, struct tl_error *err)
{
    struct entry entry = {.position = *position};
    if (!copy_texts(&entry, fields)) {
        tl_text_free(&entry.texts);
        return tl_error_set(err, TL_ERR_NOMEM, "no memory for a change");
    }
    entry.change.at_ms = tl_reply_integer(tl_reply_of(fields, "at"));
    if (self->n == self->limit)
        tl_text_free(&self->list[--self->n].texts);
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
    struct tl_reply *reply =
        tl_ask(self->redis, err, "XREVRANGE", source->key, start, "-", "COUNT", count, NULL);
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
    if (!tl_queue_list(self->redis, self->key_prefix, &names, &n, err))
        return false;
    bool ok = true;
    for (size_t i = 0; ok && i < n; i++)
        ok = read_queue(self, names[i], err);
    free(names);
    return ok;
}

bool tl_changes_read(struct tl_redis *redis, const char *key_prefix,
                     const struct tl_changes_query *query, tl_changes_callback callback,
                     void *context, struct tl_error *err)
{
    char key[TL_KEY_MAX];
    struct reading self = {.redis = redis,
                           .key_prefix = key_prefix,
                           .before = {.ms = UINT64_MAX, .seq = UINT64_MAX},
                           .limit = query->limit};
    if (query->limit == 0 || query->limit > TL_CHANGES_LIMIT_MAX)
        return tl_error_set(err, TL_ERR_INVALID, "the limit must be from 1 to %d",
                            TL_CHANGES_LIMIT_MAX);
    if (query->before != NULL && !parse_position(query->before, &self.before))
        return tl_error_set(err, TL_ERR_INVALID,
                            "`before` must be the id of a change, as in 1732320000000-0:sale");
    if (query->queue != NULL && !tl_queue_name_valid(query->queue, strlen(query->queue)))
        return tl_error_set(err, TL_ERR_INVALID, "that is not a valid queue name");
    self.list = calloc(query->limit, sizeof(*self.list));
    if (self.list == NULL)
        return tl_error_set(err, TL_ERR_NOMEM, "no memory for %zu changes", query->limit);
    const struct source of_none = {.key = tl_key_common(key_prefix, TL_COMMON_CHANGES, key),
                                   .queue = "",
                                   .only = query->queue};
    bool ok = read_stream(&self, &of_none, err) &&
              (query->queue != NULL ? read_queue(&self, query->queue, err) : read_all(&self, err));
    for (size_t i = 0; ok && i < self.n; i++) {
        const struct position *position = &self.list[i].position;
        struct tl_changes_entry *change = &self.list[i].change;
        if (position->queue[0] != '\0')
            change->queue = position->queue;
        snprintf(change->id, sizeof(change->id), "%" PRIu64 "-%" PRIu64 "%s%s", position->ms,
                 position->seq, position->queue[0] != '\0' ? ":" : "", position->queue);
        ok = callback(context, change, err);
    }
    for (size_t i = 0; i < self.n; i++)
        tl_text_free(&self.list[i].texts);
    free(self.list);
    return ok;
}
