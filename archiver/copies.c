/* SPDX-License-Identifier: Apache-2.0 */
/* What is copied as it is: the record of changes, and the points of the history. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "archiver/archiver.h"
#include "archiver/rows.h"
#include "common/base/units.h"
#include "common/store/reply.h"
#include "common/wire/names.h"

#define AT_ONCE      "500" /* entries, read by one command */
#define YEAR_5000_MS UINT64_C(95617584000000)

enum {
    NUMBER_SIZE = 24,
    UNKNOWN_MS = 2000, /* between two looks whether the queue is known */
    REFUSED_MS = 10000 /* after what PostgreSQL refused */
};

/* ---- the record of changes ---- */

/* Something else may have written the entry: PostgreSQL refuses texts that are no UTF-8, and would
 * refuse this one again and again. */
static const char *field(const struct tl_reply *fields, const char *name)
{
    const char *text = tl_reply_string(tl_reply_of(fields, name), NULL);
    return text != NULL && tl_utf8_valid(text) ? text : "";
}

static bool insert_change(struct tl_database *database, const char *const values[9],
                          struct tl_error *err)
{
    return tl_postgres_do(&database->postgres,
                          "INSERT INTO queue_changes (queue_id, entry_ms, entry_nth, at, who, "
                          "source, what, before, after) SELECT queue_id, $2, $3, "
                          "to_timestamp($4::float8 / 1000), $5, $6, $7, $8::jsonb, $9::jsonb FROM "
                          "queues WHERE name = $1 ON CONFLICT DO NOTHING",
                          9, values, err);
}

static bool write_change(struct tl_database *database, const char *queue,
                         const struct tl_reply *entry, struct tl_error *err)
{
    const struct tl_reply *fields = tl_reply_at(entry, 1);
    char ms[NUMBER_SIZE];
    const char *id = tl_reply_text(entry, 0);
    const char *dash = strchr(id, '-');
    if (dash == NULL)
        return true;
    snprintf(ms, sizeof(ms), "%.*s", (int)(dash - id), id);
    uint64_t at;
    bool has_time =
        tl_number_parse(field(fields, "at"), &at, &(struct tl_error){0}) && at < YEAR_5000_MS;
    const unsigned char *key = database->pseudonyms ? database->key : NULL;
    char *before = tl_rows_change(key, field(fields, "before"));
    char *after = tl_rows_change(key, field(fields, "after"));
    const char *const values[] = {queue,
                                  ms,
                                  dash + 1,
                                  has_time ? field(fields, "at") : ms,
                                  field(fields, "who"),
                                  field(fields, "from"),
                                  field(fields, "what"),
                                  before,
                                  after};
    bool ok = ((before != NULL && after != NULL) ||
               tl_error_set(err, TL_ERR_NOMEM, "no memory for a change")) &&
              insert_change(database, values, err);
    free(before);
    free(after);
    return ok;
}

static bool write_changes(struct tl_database *database, const char *queue,
                          const struct tl_reply *entries, struct tl_error *err)
{
    struct tl_postgres *postgres = &database->postgres;
    bool ok = tl_postgres_do(postgres, "BEGIN", 0, NULL, err);
    for (size_t i = 0; ok && i < tl_reply_count(entries); i++)
        ok = write_change(database, queue, tl_reply_at(entries, i), err);
    ok = ok && tl_postgres_do(postgres, "COMMIT", 0, NULL, err);
    if (!ok && tl_postgres_connected(postgres) &&
        !tl_postgres_do(postgres, "ROLLBACK", 0, NULL, NULL))
        tl_postgres_close(postgres);
    return ok;
}

/* ---- the history ---- */

/* Appends the point of an entry; one with an impossible time is left out. */
static bool add_point(json_t *points, const struct tl_reply *entry)
{
    static const char *const names[] = {TL_HISTORY_TEXTS};
    const struct tl_reply *fields = tl_reply_at(entry, 1);
    int64_t at_ms = tl_reply_signed(entry, 0); /* of "MS-SEQ" */
    if (at_ms < 0 || (uint64_t)at_ms >= YEAR_5000_MS)
        return true;
    json_t *point =
        json_pack("{s:I, s:s}", "at_ms", (json_int_t)at_ms, "mode", field(fields, "mode"));
    bool ok = point != NULL;
    for (size_t i = 0; ok && i < sizeof(names) / sizeof(names[0]); i++)
        ok = json_object_set_new(
                 point, names[i],
                 json_integer((json_int_t)tl_reply_integer(tl_reply_of(fields, names[i])))) == 0;
    return json_array_append_new(points, point) == 0 && ok;
}

static bool write_points(struct tl_database *database, const char *queue,
                         const struct tl_reply *entries, struct tl_error *err)
{
    json_t *points = json_array();
    bool ok = points != NULL;
    for (size_t i = 0; ok && i < tl_reply_count(entries); i++)
        ok = add_point(points, tl_reply_at(entries, i));
    char *text = ok ? json_dumps(points, JSON_COMPACT) : NULL;
    json_decref(points);
    const char *const values[] = {queue, text};
    ok = (text != NULL || tl_error_set(err, TL_ERR_NOMEM, "no memory for a history")) &&
         tl_postgres_do(
             &database->postgres,
             "INSERT INTO queue_stats (queue_id, at, mode, waiting, active, capacity, totals) "
             "SELECT queue_id, to_timestamp((p->>'at_ms')::float8 / 1000), p->>'mode', "
             "(p->>'waiting')::bigint, (p->>'active')::bigint, (p->>'capacity')::bigint, "
             "p - '{at_ms,mode,waiting,active,capacity}'::text[] "
             "FROM queues, jsonb_array_elements($2::jsonb) AS p WHERE name = $1 "
             "ON CONFLICT DO NOTHING",
             2, values, err);
    free(text);
    return ok;
}

/* ---- both ---- */

static const struct copy {
    enum tl_key stream;
    int64_t every_ms; /* between two looks */
    const char *last; /* asks for the id of the last entry that PostgreSQL has of queue_id */
    /* Writes entries; one that is there stays. */
    bool (*write)(struct tl_database *database, const char *queue, const struct tl_reply *entries,
                  struct tl_error *err);
} copies[TL_COPIES] = {
    [TL_COPY_CHANGES] = {TL_KEY_CHANGES, 2000,
                         "SELECT entry_ms || '-' || entry_nth FROM queue_changes AS c "
                         "WHERE c.queue_id = q.queue_id ORDER BY entry_ms DESC, entry_nth DESC",
                         write_changes},
    [TL_COPY_HISTORY] = {TL_KEY_HISTORY_MINUTES, 20000,
                         "SELECT (extract(epoch FROM at) * 1000)::bigint || '-0' FROM queue_stats "
                         "AS s WHERE s.queue_id = q.queue_id ORDER BY at DESC",
                         write_points},
};

/* *id: "" when PostgreSQL does not know the queue yet. */
static bool find_last(struct tl_database *database, const struct copy *copy, const char *queue,
                      char id[TL_ENTRY_ID_MAX], struct tl_error *err)
{
    char sql[512];
    const char *const values[] = {queue};
    snprintf(sql, sizeof(sql),
             "SELECT coalesce((%s LIMIT 1), '0-0') FROM queues AS q WHERE name = $1", copy->last);
    PGresult *found = tl_postgres_run(&database->postgres, sql, 1, values, err);
    if (found == NULL)
        return false;
    snprintf(id, TL_ENTRY_ID_MAX, "%s", PQntuples(found) > 0 ? PQgetvalue(found, 0, 0) : "");
    PQclear(found);
    return true;
}

/* The entries could not be written: they are read again. */
static void fail(struct tl_archiver *self, const struct tl_held_queue *held,
                 struct tl_copied *copied, int64_t now_ms, const struct tl_error *problem)
{
    copied->id[0] = '\0';
    if (tl_archiver_is_refused(self, problem)) {
        copied->due_ms = now_ms + REFUSED_MS;
        tl_log(TL_LOG_WARN, &(struct tl_log_fields){.queue = held->keys.queue, .error = problem},
               "changes or the history could not be archived, trying again");
    } else {
        self->problem = *problem;
        self->usable = false;
    }
}

/* False when Redis failed. */
static bool copy_next(struct tl_archiver *self, struct tl_held_queue *held, const struct copy *copy,
                      struct tl_copied *copied, int64_t now_ms, struct tl_error *err)
{
    const char *queue = held->keys.queue;
    struct tl_error problem = {0};
    struct tl_reply *reply = NULL;
    bool ok =
        copied->id[0] != '\0' || find_last(&self->database, copy, queue, copied->id, &problem);
    const bool is_known = copied->id[0] != '\0';
    if (ok && is_known) {
        reply = tl_entries_after(held, copy->stream, copied->id, AT_ONCE, err);
        if (reply == NULL)
            return false;
        ok = tl_reply_count(reply) == 0 || copy->write(&self->database, queue, reply, &problem);
    }
    size_t n = tl_reply_count(reply);
    if (ok && n > 0)
        snprintf(copied->id, sizeof(copied->id), "%s", tl_reply_text(tl_reply_at(reply, n - 1), 0));
    tl_reply_free(reply);
    copied->due_ms = n == strtoul(AT_ONCE, NULL, 10) ? now_ms
                     : is_known                      ? now_ms + copy->every_ms
                                                     : now_ms + UNKNOWN_MS;
    if (!ok)
        fail(self, held, copied, now_ms, &problem);
    return true;
}

bool tl_archiver_copy(struct tl_archiver *self, struct tl_held_queue *held, int64_t now_ms,
                      struct tl_error *err)
{
    struct tl_archived_queue *queue = held->state;
    for (size_t i = 0; i < TL_COPIES; i++)
        if (self->usable && !self->refused && now_ms >= queue->copied[i].due_ms &&
            !copy_next(self, held, &copies[i], &queue->copied[i], now_ms, err))
            return false;
    return true;
}
