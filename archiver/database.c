/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "archiver/database.h"
#include "archiver/rows.h"
#include "common/archive/migrate.h"
#include "common/base/log.h"
#include "common/base/units.h"

enum { ROWS_AT_ONCE = 20000 };

/* A row for each place that the batch names, without indexes and without a log; empty at each
 * commit. */
#define STAGING "CREATE TEMPORARY TABLE staging (LIKE queue_entries) ON COMMIT DELETE ROWS"
/* The server gives up before this program does, which would leave the statement and its locks
 * behind; and does not stand in the way of others for long while it waits for a lock. */
#define LIMITS                                                                                     \
    "SET lock_timeout = '3s'; SET statement_timeout = '20s'; "                                     \
    "SET idle_in_transaction_session_timeout = '60s'"
/* What is told of the lane and the visitor is looked at by the trigger told_again. */
#define UPSERT                                                                                     \
    "INSERT INTO queue_entries AS q SELECT * FROM staging ON CONFLICT (generation_id, seq) "       \
    "DO UPDATE SET lane = excluded.lane, lane_before = excluded.lane_before, "                     \
    "visitor = CASE WHEN q.visitor IS NOT NULL THEN excluded.visitor END, "                        \
    "status = coalesce(excluded.status, q.status), "                                               \
    "serial = coalesce(excluded.serial, q.serial), "                                               \
    "joined_at = coalesce(q.joined_at, excluded.joined_at), "                                      \
    "restored_at = coalesce(excluded.restored_at, q.restored_at), "                                \
    "admitted_at = coalesce(excluded.admitted_at, q.admitted_at), "                                \
    "claimed_at = coalesce(q.claimed_at, excluded.claimed_at), "                                   \
    "deadline = coalesce(excluded.deadline, q.deadline), "                                         \
    "ended_at = CASE WHEN excluded.status IS NULL THEN q.ended_at ELSE excluded.ended_at END, "    \
    "event = excluded.event, leaf = coalesce(excluded.leaf, q.leaf)"

static bool check_version(struct tl_postgres *postgres, struct tl_error *err)
{
    unsigned version;
    if (!tl_migrate_version(postgres, &version, err))
        return false;
    return version == tl_migrate_wanted() ||
           tl_error_set(err, TL_ERR_INVALID,
                        version < tl_migrate_wanted()
                            ? "the tables in PostgreSQL are missing or old: run `tellerline db "
                              "migrate`"
                            : "the tables in PostgreSQL are those of a newer release: upgrade "
                              "the archiver");
}

/* The trail keeps the name that it has in the archive: its older checkpoints and proofs are in that
 * name. */
static bool take_name(struct tl_database *database, const char *trail_key)
{
    if (strcmp(trail_key, database->trail_key) == 0)
        return true;
    if (!tl_trail_signer_rename(&database->trail.signer, trail_key, &(struct tl_error){0}))
        return false;
    snprintf(database->trail_key, sizeof(database->trail_key), "%s", trail_key);
    tl_info("the key that verifies the trail is %s", trail_key);
    if (strcmp(trail_key, database->verifier) != 0)
        tl_warn("the trail is still signed in the name %s, which is not the host of "
                "http.public_url: to change it, stop all archivers, delete the row of "
                "tellerline.archive_keys, start them, and publish `tellerline trail key` again",
                database->trail.signer.name);
    return true;
}

/* All archivers have the same keys: with another archive key a visitor had another pseudonym, and
 * could not prove a place. */
static bool check_keys(struct tl_database *database, struct tl_error *err)
{
    const char *const values[] = {database->key_hash, database->verifier};
    PGresult *found = NULL;
    if (tl_postgres_do(&database->postgres,
                       "INSERT INTO archive_keys (archive_key, trail_key) VALUES ($1, $2) "
                       "ON CONFLICT DO NOTHING",
                       2, values, err))
        found =
            tl_postgres_run(&database->postgres,
                            "SELECT archive_key = $1, trail_key FROM archive_keys", 1, values, err);
    if (found == NULL)
        return false;
    const char *wrong = NULL;
    if (PQntuples(found) != 1 || PQgetvalue(found, 0, 0)[0] != 't')
        wrong = "secrets.archive_key";
    else if (!take_name(database, PQgetvalue(found, 0, 1)))
        wrong = "secrets.trail_key";
    bool ok = wrong == NULL ||
              tl_error_set(err, TL_ERR_INVALID,
                           "%s is not the one with which the archive was written: give all "
                           "archivers the same; to change it on purpose, delete the row of "
                           "tellerline.archive_keys",
                           wrong);
    PQclear(found);
    return ok;
}

bool tl_database_open(struct tl_database *database, struct tl_error *err)
{
    struct tl_postgres *postgres = &database->postgres;
    if (tl_postgres_connected(postgres))
        return true;
    bool ok = tl_postgres_open(postgres, database->url, "tellerline-archiver", err) &&
              tl_postgres_do(postgres, LIMITS, 0, NULL, err) && check_version(postgres, err) &&
              check_keys(database, err) && tl_postgres_do(postgres, STAGING, 0, NULL, err);
    if (!ok)
        tl_postgres_close(postgres); /* one that is open was checked */
    return ok;
}

void tl_database_close(struct tl_database *database)
{
    tl_postgres_close(&database->postgres);
    tl_text_free(&database->buffer);
    tl_trail_close(&database->trail);
    sodium_memzero(database->key, sizeof(database->key));
}

bool tl_database_queues(struct tl_database *database,
                        void (*found)(void *context, const char *queue), void *context,
                        struct tl_error *err)
{
    PGresult *names = tl_postgres_run(&database->postgres,
                                      "SELECT name FROM queues WHERE queue_id IN (SELECT queue_id "
                                      "FROM queue_generations WHERE deleted_at IS NULL)",
                                      0, NULL, err);
    for (int i = 0; i < PQntuples(names); i++)
        found(context, PQgetvalue(names, i, 0));
    PQclear(names);
    return names != NULL;
}

bool tl_database_rounds(struct tl_database *database,
                        void (*found)(void *context, const char *queue, int64_t differences,
                                      bool is_asked),
                        void *context, struct tl_error *err)
{
    PGresult *rows = tl_postgres_run(
        &database->postgres,
        "SELECT name, (SELECT count(*) FROM queue_differences AS d WHERE d.generation_id = "
        "g.generation_id), coalesce(asked_at > done_at, false) FROM queues AS q, LATERAL (SELECT "
        "generation_id FROM queue_generations WHERE queue_id = q.queue_id ORDER BY generation DESC "
        "LIMIT 1) AS g LEFT JOIN queue_rounds USING (generation_id)",
        0, NULL, err);
    for (int i = 0; i < PQntuples(rows); i++)
        found(context, PQgetvalue(rows, i, 0), strtoll(PQgetvalue(rows, i, 1), NULL, 10),
              PQgetvalue(rows, i, 2)[0] == 't');
    PQclear(rows);
    return rows != NULL;
}

/* ---- the parts of a batch ---- */

bool tl_database_part(struct tl_database *database, struct tl_archive_part *part,
                      struct tl_error *err)
{
    char generation[TL_POSTGRES_TEXT];
    const char *const values[] = {part->queue, tl_postgres_text(part->generation, generation)};
    PGresult *found = tl_postgres_run(&database->postgres, "SELECT * FROM open_generation($1, $2)",
                                      2, values, err);
    if (found == NULL)
        return false;
    part->queue_id = (int)strtol(PQgetvalue(found, 0, 0), NULL, 10);
    part->generation_id = (int)strtol(PQgetvalue(found, 0, 1), NULL, 10);
    part->written = tl_postgres_number(found, 0, 2);
    part->at_ms = strtoll(PQgetvalue(found, 0, 3), NULL, 10);
    PQclear(found);
    return true;
}

bool tl_database_went_back(struct tl_database *database, const struct tl_archive_part *part,
                           struct tl_error *err)
{
    char id[TL_POSTGRES_TEXT];
    const char *const values[] = {tl_postgres_text((uint64_t)part->generation_id, id)};
    return tl_postgres_do(&database->postgres,
                          "UPDATE queue_generations SET told_whole = false, told_why = 'archive' "
                          "WHERE generation_id = $1",
                          1, values, err);
}

/* Moves on what was written. It is the lock, too: of two archivers with the same entries, the
 * second finds another number here. */
static bool move_on(struct tl_database *database, const struct tl_archive_part *part,
                    struct tl_error *err)
{
    char id[TL_POSTGRES_TEXT], before[TL_POSTGRES_TEXT], event[TL_POSTGRES_TEXT],
        at[TL_POSTGRES_TEXT];
    const char *const values[] = {tl_postgres_text((uint64_t)part->generation_id, id),
                                  tl_postgres_text(part->written, before),
                                  tl_postgres_text(part->event, event),
                                  tl_postgres_text((uint64_t)part->at_ms, at)};
    PGresult *done = tl_postgres_run(
        &database->postgres,
        "UPDATE queue_generations SET event = $3, last_at = to_timestamp($4::float8 / 1000) "
        "WHERE generation_id = $1 AND event = $2",
        4, values, err);
    bool ok = done != NULL && strcmp(PQcmdTuples(done), "1") == 0;
    if (done != NULL && !ok)
        tl_error_set(err, TL_ERR_STALE, "another archiver has written queue %s meanwhile",
                     part->queue);
    PQclear(done);
    return ok;
}

/* By generation_id, so that two archivers lock in the same order. */
static int compare_parts(const void *a, const void *b)
{
    const struct tl_archive_part *const *first = a, *const *second = b;
    return ((*first)->generation_id > (*second)->generation_id) -
           ((*first)->generation_id < (*second)->generation_id);
}

static bool move_all_on(struct tl_database *database, struct tl_archive_batch *batch,
                        struct tl_error *err)
{
    struct tl_archive_part **sorted = calloc(batch->n_parts + 1, sizeof(struct tl_archive_part *));
    if (sorted == NULL)
        return tl_error_set(err, TL_ERR_NOMEM, "no memory for a batch");
    size_t n = 0;
    for (size_t i = 0; i < batch->n_parts; i++)
        if (batch->parts[i].event > batch->parts[i].written)
            sorted[n++] = &batch->parts[i];
    qsort(sorted, n, sizeof(struct tl_archive_part *), compare_parts);
    bool ok = true;
    for (size_t i = 0; ok && i < n; i++)
        ok = move_on(database, sorted[i], err);
    free(sorted);
    return ok;
}

/* ---- notes ---- */

const unsigned char *tl_database_key(const struct tl_database *database)
{
    return database->pseudonyms ? database->key : NULL;
}

/* Of a note: generation, event, time, detail. */
struct values {
    char id[TL_POSTGRES_TEXT], event[TL_POSTGRES_TEXT], at[TL_POSTGRES_TEXT],
        detail[TL_POSTGRES_TEXT];
};

static bool run_note(struct tl_database *database, const struct values *v, const char *sql, int n,
                     struct tl_error *err)
{
    const char *const values[] = {v->id, v->event, v->at, v->detail};
    return tl_postgres_do(&database->postgres, sql, n, values, err);
}

static bool note_begins(struct tl_database *database, struct tl_archive_note *whole,
                        const struct values *v, struct tl_error *err)
{
    char since[TL_POSTGRES_TEXT];
    const char *reason = tl_leaf_gap_name(tl_note_number(&whole->note));
    const char *const values[] = {v->id,  v->event,
                                  v->at,  v->detail,
                                  reason, tl_postgres_text(tl_note_number(&whole->note), since)};
    return tl_postgres_do(&database->postgres,
                          "INSERT INTO queue_gaps VALUES ($1, $2, $5, to_timestamp($6::float8 / "
                          "1000), to_timestamp($3::float8 / 1000), $4)",
                          6, values, err) &&
           run_note(database, v,
                    "UPDATE queue_generations SET told_from = $2, told_whole = false, "
                    "told_why = (SELECT reason FROM queue_gaps WHERE generation_id = $1 AND "
                    "event = $2) WHERE generation_id = $1",
                    2, err);
}

/* Those who wait or are active have ended; those who were told again since stay, unless the queue
 * was deleted. In portions, so that no statement of a long line reaches its time limit. */
static bool note_ended(struct tl_database *database, const struct values *v, const char *status,
                       struct tl_error *err)
{
    char seq[TL_POSTGRES_TEXT] = "0", most[TL_POSTGRES_TEXT];
    const char *const values[] = {v->id,  v->event, v->at,
                                  status, seq,      tl_postgres_text(ROWS_AT_ONCE, most)};
    for (;;) {
        PGresult *last = tl_postgres_run(
            &database->postgres,
            "WITH portion AS MATERIALIZED (SELECT seq FROM queue_entries WHERE generation_id = $1 "
            "AND seq > $5 ORDER BY seq LIMIT $6), ended AS (UPDATE queue_entries AS q SET "
            "status = $4::text::entry_status, ended_at = to_timestamp($3::float8 / 1000), "
            "lane_before = lane, event = $2 FROM queue_generations AS g WHERE "
            "g.generation_id = $1 AND "
            "q.generation_id = $1 AND q.seq > $5 AND q.seq <= (SELECT max(seq) FROM portion) AND "
            "(q.status IN ('waiting', 'active') OR q.status IS NULL) AND "
            "(q.event < g.told_from OR $4::text = 'deleted') "
            "RETURNING q.generation_id, q.seq, q.lane, q.visitor, g.told_why), "
            "found AS (INSERT INTO queue_differences SELECT generation_id, seq, 'told', $2, now(), "
            "NULL, NULL, 'waiting or active in lane ' || lane, visitor FROM ended "
            "WHERE $4::text = 'unknown' AND told_why = 'corrected') SELECT max(seq) FROM portion",
            6, values, err);
        if (last == NULL)
            return false;
        bool more = !PQgetisnull(last, 0, 0);
        snprintf(seq, sizeof(seq), "%s", PQgetvalue(last, 0, 0));
        PQclear(last);
        if (!more)
            return true;
    }
}

/* The draw gave the seq `detail` to the first of these visitors, the next to the second... */
static bool note_drawn(struct tl_database *database, const struct tl_archive_part *part,
                       struct tl_archive_note *whole, const struct values *v, struct tl_error *err)
{
    struct tl_text list = {0};
    const char *visitor;
    size_t length;
    tl_place place;
    for (uint64_t i = 0; tl_note_visitor(&whole->note, &visitor, &length, &place); i++)
        tl_text_append(&list, "%s(%" PRIu64 ",%" PRIu64 ",%" PRIu64 ")", list.length > 0 ? "," : "",
                       tl_place_seq(place), whole->note.detail + i,
                       part->first_leaf + whole->leaf + i);
    struct tl_text sql = {0};
    tl_text_append(
        &sql,
        "UPDATE queue_entries SET joined_seq = coalesce(joined_seq, seq), seq = d.after, "
        "lane_before = lane, event = $2%s FROM (VALUES %s) AS d (before, after, drawn) "
        "WHERE generation_id = $1 AND seq = d.before",
        part->leaves.n > 0 && part->first_leaf != TL_TRAIL_NO_LEAF ? ", leaf = d.drawn" : "",
        list.length > 0 ? list.data : "(0,0,0)");
    bool ok = (!list.failed && !sql.failed) ||
              tl_error_set(err, TL_ERR_NOMEM, "no memory for the numbers of a draw");
    ok = ok && run_note(database, v, sql.data, 2, err);
    tl_text_free(&list);
    tl_text_free(&sql);
    return ok;
}

static bool note_forgotten(struct tl_database *database, struct tl_archive_batch *batch,
                           struct tl_archive_note *whole, struct tl_error *err)
{
    char queue[TL_POSTGRES_TEXT], name[TL_VISITOR_MAX + 1];
    const char *visitor;
    size_t length;
    if (!tl_note_name(&whole->note, &visitor, &length))
        return true;
    tl_rows_name(tl_database_key(database), visitor, length, name);
    const char *const values[] = {
        tl_postgres_text((uint64_t)batch->parts[whole->part].queue_id, queue), name};
    return tl_postgres_do(&database->postgres,
                          "UPDATE queue_entries SET visitor = NULL WHERE visitor = $2 AND "
                          "generation_id IN (SELECT generation_id FROM queue_generations WHERE "
                          "queue_id = $1)",
                          2, values, err) &&
           tl_postgres_do(&database->postgres,
                          "UPDATE queue_differences SET "
                          "redis_visitor = nullif(redis_visitor, $2), "
                          "archive_visitor = nullif(archive_visitor, $2) WHERE "
                          "$2 IN (redis_visitor, archive_visitor) AND generation_id IN "
                          "(SELECT generation_id FROM queue_generations WHERE queue_id = $1)",
                          2, values, err) &&
           tl_postgres_do(&database->postgres,
                          "UPDATE queue_changes SET "
                          "before = jsonb_set(before, '{visitor}', '\"(forgotten)\"', false), "
                          "after = jsonb_set(after, '{visitor}', '\"(forgotten)\"', false) "
                          "WHERE queue_id = $1 AND $2 IN (before->>'visitor', after->>'visitor')",
                          2, values, err);
}

static void set_values(const struct tl_archive_batch *batch, const struct tl_archive_note *whole,
                       struct values *v)
{
    tl_postgres_text((uint64_t)batch->parts[whole->part].generation_id, v->id);
    tl_postgres_text(whole->event, v->event);
    tl_postgres_text((uint64_t)whole->at_ms, v->at);
    tl_postgres_text(whole->note.detail, v->detail);
}

static bool write_note(struct tl_database *database, struct tl_archive_batch *batch,
                       struct tl_archive_note *whole, struct tl_error *err)
{
    struct values v;
    set_values(batch, whole, &v);
    switch (whole->note.kind) {
    case TL_NOTE_ALL:
        return note_ended(database, &v, "unknown", err) &&
               run_note(database, &v,
                        "UPDATE queue_generations SET told_whole = true WHERE generation_id = $1",
                        1, err);
    case TL_NOTE_DRAWN:
        return note_drawn(database, &batch->parts[whole->part], whole, &v, err);
    case TL_NOTE_DELETED:
        return note_ended(database, &v, "deleted", err) &&
               run_note(database, &v,
                        "UPDATE queue_generations SET event = greatest(event, $2), deleted_at = "
                        "to_timestamp($3::float8 / 1000) WHERE generation_id = $1",
                        3, err);
    case TL_NOTE_FORGOTTEN:
        return note_forgotten(database, batch, whole, err);
    default:
        return true;
    }
}

/* ---- a transaction ---- */

/* Where all begin to be told, before the rows: from then on places may be new. */
static bool write_begins(struct tl_database *database, struct tl_archive_batch *batch,
                         struct tl_error *err)
{
    struct values v;
    for (size_t i = 0; i < batch->n_notes; i++) {
        set_values(batch, &batch->notes[i], &v);
        if (batch->notes[i].note.kind == TL_NOTE_BEGINS &&
            !note_begins(database, &batch->notes[i], &v, err))
            return false;
    }
    return true;
}

/* What was told in this transaction, and cannot be. */
static bool log_told(struct tl_database *database, struct tl_error *err)
{
    PGresult *found = tl_postgres_run(
        &database->postgres,
        "SELECT name, difference_text(d) FROM queue_differences AS d JOIN queue_generations USING "
        "(generation_id) JOIN queues USING (queue_id) WHERE source = 'told' AND found_at = now()",
        0, NULL, err);
    for (int i = 0; i < PQntuples(found); i++)
        tl_log(TL_LOG_ERROR, &(struct tl_log_fields){.queue = PQgetvalue(found, i, 0)},
               "the archive is told what cannot be: %s", PQgetvalue(found, i, 1));
    PQclear(found);
    return found != NULL;
}

static bool write_all(struct tl_database *database, struct tl_archive_batch *batch,
                      struct tl_error *err)
{
    if (!move_all_on(database, batch, err) || !write_begins(database, batch, err) ||
        !tl_trail_write(&database->trail, &database->postgres, batch, err))
        return false;
    if (batch->n_rows > 0 &&
        (!tl_rows_write(batch, tl_database_key(database), &database->buffer, err) ||
         !tl_postgres_copy(&database->postgres, "COPY staging FROM STDIN (FORMAT binary)",
                           database->buffer.data, database->buffer.length, err) ||
         !tl_postgres_do(&database->postgres, UPSERT, 0, NULL, err)))
        return false;
    for (size_t i = 0; i < batch->n_notes; i++)
        if (!write_note(database, batch, &batch->notes[i], err))
            return false;
    return log_told(database, err);
}

bool tl_database_write(struct tl_database *database, struct tl_archive_batch *batch,
                       struct tl_error *err)
{
    struct tl_postgres *postgres = &database->postgres;
    bool ok = tl_postgres_do(postgres, "BEGIN", 0, NULL, err) && write_all(database, batch, err) &&
              tl_postgres_do(postgres, "COMMIT", 0, NULL, err);
    if (!ok && tl_postgres_connected(postgres) &&
        !tl_postgres_do(postgres, "ROLLBACK", 0, NULL, NULL))
        tl_postgres_close(postgres);
    return ok;
}

/* ---- what was lost ---- */

bool tl_database_note_lost(struct tl_database *database, int generation_id, uint64_t generation,
                           uint64_t event, struct tl_error *err)
{
    char id[TL_POSTGRES_TEXT], later[TL_POSTGRES_TEXT], at[TL_POSTGRES_TEXT];
    const char *const values[] = {tl_postgres_text((uint64_t)generation_id, id),
                                  tl_postgres_text(generation, later), tl_postgres_text(event, at)};
    return tl_postgres_do(&database->postgres,
                          "SELECT open_generation(name, $2::bigint) FROM queue_generations "
                          "JOIN queues USING (queue_id) WHERE generation_id = $1",
                          2, values, err) &&
           tl_postgres_do(&database->postgres,
                          "INSERT INTO queue_gaps SELECT p.generation_id, -$3::bigint, 'lost', "
                          "l.last_at, to_timestamp(p.generation / 1000000.0), 0 "
                          "FROM queue_generations AS l JOIN queue_generations AS p USING "
                          "(queue_id) WHERE l.generation_id = $1 AND p.generation = $2 AND NOT "
                          "EXISTS (SELECT FROM queue_gaps AS q WHERE q.generation_id = "
                          "p.generation_id AND reason = 'lost')",
                          3, values, err);
}

/* ---- what is old ---- */

bool tl_database_sweep(struct tl_database *database, int64_t kept_ms, unsigned *n, bool *again,
                       struct tl_error *err)
{
    char seconds[TL_POSTGRES_TEXT], most[TL_POSTGRES_TEXT];
    const char *const values[] = {tl_postgres_text((uint64_t)(kept_ms / 1000), seconds),
                                  tl_postgres_text(ROWS_AT_ONCE, most)};
    PGresult *done = tl_postgres_run(&database->postgres,
                                     "SELECT * FROM sweep($1::bigint * interval '1 second', $2)", 2,
                                     values, err);
    if (done == NULL)
        return false;
    *n = (unsigned)strtoul(PQgetvalue(done, 0, 0), NULL, 10);
    *again = PQgetvalue(done, 0, 1)[0] == 't';
    PQclear(done);
    return true;
}
