/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/units.h"
#include "common/store/changes.h"
#include "common/store/queue.h"
#include "common/store/reply.h"

enum {
    PAGE = 100
}; /* entries of tl:changes read at once when most of them may be of other queues */

/* ---- where an entry stands: by time, newest first; at the same time by the stream's queue ---- */

struct position {
    uint64_t ms, seq;
    char queue[TL_QUEUE_NAME_MAX + 1]; /* of the stream tl:{q}:changes; "": tl:changes */
};

static bool parse_number(const char **text, char end, uint64_t *number)
{
    char digits[24];
    size_t n = strspn(*text, "0123456789");
    if (n >= sizeof(digits) || (*text)[n] != end)
        return false;
    memcpy(digits, *text, n);
    digits[n] = '\0';
    *text += n + (end != '\0' ? 1 : 0);
    return tl_number_parse(digits, number, NULL);
}

static bool parse_entry_id(const char *text, struct position *position)
{
    return parse_number(&text, '-', &position->ms) && parse_number(&text, '\0', &position->seq);
}

static bool parse_position(const char *text, struct position *position)
{
    char id[TL_CHANGES_ID_MAX + 1];
    if (strlen(text) >= sizeof(id))
        return false;
    memcpy(id, text, strlen(text) + 1);
    char *queue = strchr(id, ':');
    *position = (struct position){0};
    if (queue != NULL) {
        *queue++ = '\0';
        if (!tl_queue_name_valid(queue, strlen(queue)))
            return false;
        memcpy(position->queue, queue, strlen(queue) + 1);
    }
    return parse_entry_id(id, position);
}

static void format_position(const struct position *position, char text[TL_CHANGES_ID_MAX + 1])
{
    snprintf(text, TL_CHANGES_ID_MAX + 1, "%" PRIu64 "-%" PRIu64 "%s%s", position->ms,
             position->seq, position->queue[0] != '\0' ? ":" : "", position->queue);
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
    char *texts; /* those of `change` */
    struct tl_changes_entry change;
};

struct newest {
    size_t n, limit;
    struct entry *list; /* newest first */
};

static void newest_deinit(struct newest *newest)
{
    for (size_t i = 0; i < newest->n; i++)
        free(newest->list[i].texts);
    free(newest->list);
}

static bool copy_texts(struct entry *entry, const struct tl_reply *fields, struct tl_error *err)
{
    static const char *const names[] = {"queue", "who", "from", "what", "before", "after"};
    enum { TEXTS = sizeof(names) / sizeof(names[0]) };
    struct tl_changes_entry *change = &entry->change;
    const char **const members[TEXTS] = {&change->queue, &change->who,    &change->from,
                                         &change->what,  &change->before, &change->after};
    const char *values[TEXTS];
    size_t lengths[TEXTS], size = 0;
    for (size_t i = 0; i < TEXTS; i++) {
        values[i] = tl_reply_string(tl_reply_of(fields, names[i]), &lengths[i]);
        if (i == 0 && entry->position.queue[0] != '\0') {
            values[i] = entry->position.queue;
            lengths[i] = strlen(values[i]);
        }
        size += lengths[i] + 1;
    }
    char *to = entry->texts = malloc(size);
    if (to == NULL)
        return tl_error_set(err, TL_ERR_NOMEM, "no memory for a change of %zu bytes", size);
    for (size_t i = 0; i < TEXTS; i++) {
        memcpy(to, values[i], lengths[i]);
        to[lengths[i]] = '\0';
        *members[i] = to;
        to += lengths[i] + 1;
    }
    return true;
}

/* Puts the entry where it belongs; the oldest gives way. */
static bool insert(struct newest *newest, const struct position *position,
                   const struct tl_reply *fields, struct tl_error *err)
{
    struct entry entry = {.position = *position};
    if (!copy_texts(&entry, fields, err))
        return false;
    entry.change.at_ms = tl_reply_integer(tl_reply_of(fields, "at"));
    if (newest->n == newest->limit)
        free(newest->list[--newest->n].texts);
    size_t at = newest->n;
    while (at > 0 && compare(position, &newest->list[at - 1].position) < 0)
        at--;
    memmove(&newest->list[at + 1], &newest->list[at], (newest->n - at) * sizeof(entry));
    newest->list[at] = entry;
    newest->n++;
    return true;
}

/* ---- reading a stream ---- */

struct source {
    const char *key;
    const char *queue; /* of the stream; "": tl:changes */
    const char *only;  /* entries of tl:changes that concern this queue; NULL: all */
};

/* Where reading a stream begins: behind `position`, which may be of another stream. */
static void format_start(const struct position *position, const char *queue, char text[48])
{
    bool passed = strcmp(queue, position->queue) <= 0;
    snprintf(text, 48, "%s%" PRIu64 "-%" PRIu64, passed ? "(" : "", position->ms, position->seq);
}

/* Reads the next page behind *position and moves it on; *more is false when that was all. */
static bool read_page(struct tl_redis *redis, const struct source *source, struct newest *newest,
                      struct position *position, bool *more, struct tl_error *err)
{
    char start[48], count[24];
    size_t page = source->only != NULL || newest->limit > PAGE ? PAGE : newest->limit;
    format_start(position, source->queue, start);
    snprintf(count, sizeof(count), "%zu", page);
    struct tl_reply *reply =
        tl_ask(redis, err, "XREVRANGE", source->key, start, "-", "COUNT", count, NULL);
    bool ok = reply != NULL;
    *more = tl_reply_count(reply) == page;
    for (size_t i = 0; ok && i < tl_reply_count(reply); i++) {
        const struct tl_reply *entry = tl_reply_at(reply, i);
        const struct tl_reply *fields = tl_reply_at(entry, 1);
        snprintf(position->queue, sizeof(position->queue), "%s", source->queue);
        if (!parse_entry_id(tl_reply_text(entry, 0), position)) {
            ok = tl_error_set(err, TL_ERR_PROTOCOL, "%s: an entry without an id", source->key);
        } else if (newest->n == newest->limit &&
                   compare(position, &newest->list[newest->n - 1].position) >= 0) {
            *more = false;
            break;
        } else if (source->only == NULL ||
                   strcmp(tl_reply_string(tl_reply_of(fields, "queue"), NULL), source->only) == 0) {
            ok = insert(newest, position, fields, err);
        }
    }
    tl_reply_free(reply);
    return ok;
}

static bool read_stream(struct tl_redis *redis, const struct source *source, struct newest *newest,
                        const struct position *before, struct tl_error *err)
{
    struct position position = *before;
    bool more = true, ok = true;
    while (ok && more)
        ok = read_page(redis, source, newest, &position, &more, err);
    return ok;
}

static bool read_queue(struct tl_redis *redis, const char *key_prefix, const char *queue,
                       struct newest *newest, const struct position *before, struct tl_error *err)
{
    char key[TL_KEY_MAX];
    struct tl_keys keys;
    tl_keys_init(&keys, key_prefix, queue);
    const struct source source = {.key = tl_key(&keys, TL_KEY_CHANGES, key), .queue = queue};
    return read_stream(redis, &source, newest, before, err);
}

static bool read_all(struct tl_redis *redis, const char *key_prefix, struct newest *newest,
                     const struct position *before, struct tl_error *err)
{
    char(*names)[TL_QUEUE_NAME_MAX + 1];
    size_t n;
    if (!tl_queue_list(redis, key_prefix, &names, &n, err))
        return false;
    bool ok = true;
    for (size_t i = 0; ok && i < n; i++)
        ok = read_queue(redis, key_prefix, names[i], newest, before, err);
    free(names);
    return ok;
}

bool tl_changes_read(struct tl_redis *redis, const char *key_prefix,
                     const struct tl_changes_query *query, tl_changes_callback callback,
                     void *context, struct tl_error *err)
{
    char key[TL_KEY_MAX];
    struct position before = {.ms = UINT64_MAX, .seq = UINT64_MAX};
    if (query->limit == 0 || query->limit > TL_CHANGES_LIMIT_MAX)
        return tl_error_set(err, TL_ERR_INVALID, "the limit must be from 1 to %d",
                            TL_CHANGES_LIMIT_MAX);
    if (query->before != NULL && !parse_position(query->before, &before))
        return tl_error_set(err, TL_ERR_INVALID,
                            "`before` must be the id of a change, as in 1732320000000-0:sale");
    if (query->queue != NULL && !tl_queue_name_valid(query->queue, strlen(query->queue)))
        return tl_error_set(err, TL_ERR_INVALID, "that is not a valid queue name");
    struct newest newest = {.limit = query->limit,
                            .list = calloc(query->limit, sizeof(*newest.list))};
    if (newest.list == NULL)
        return tl_error_set(err, TL_ERR_NOMEM, "no memory for %zu changes", query->limit);
    const struct source of_none = {.key = tl_key_common(key_prefix, TL_COMMON_CHANGES, key),
                                   .queue = "",
                                   .only = query->queue};
    bool ok =
        read_stream(redis, &of_none, &newest, &before, err) &&
        (query->queue != NULL ? read_queue(redis, key_prefix, query->queue, &newest, &before, err)
                              : read_all(redis, key_prefix, &newest, &before, err));
    for (size_t i = 0; ok && i < newest.n; i++) {
        format_position(&newest.list[i].position, newest.list[i].change.id);
        ok = callback(context, &newest.list[i].change, err);
    }
    newest_deinit(&newest);
    return ok;
}
