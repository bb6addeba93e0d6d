/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "archiver/portion.h"
#include "archiver/reconcile.h"
#include "common/base/grow.h"
#include "common/base/log.h"
#include "common/store/library.h"
#include "common/store/reply.h"

#define AT_ONCE "500"  /* visitors, of one call of Redis */
#define ROWS    "5000" /* entries of PostgreSQL that a step looks at; `size` counts them so */

enum {
    STEP_SIZE = 500,         /* of what is to be compared, done by a step */
    LATER_MS = 1000,         /* until a queue is looked at again that cannot be compared now */
    WRITTEN_MS = 200,        /* until PostgreSQL has more */
    MOST = 100,              /* differences that PostgreSQL keeps of a queue */
    ENDS = TL_REASON_REMOVED /* kinds of them, from 0 */
};

static void drop_page(struct tl_reconcile *reconcile)
{
    tl_reply_free(reconcile->page);
    reconcile->page = NULL;
}

void tl_reconcile_reset(struct tl_reconcile *reconcile)
{
    drop_page(reconcile);
    free(reconcile->seen);
    *reconcile = (struct tl_reconcile){.asked = reconcile->asked,
                                       .due_ms = reconcile->due_ms,
                                       .compared = reconcile->compared,
                                       .differences = reconcile->differences};
}

static enum tl_reconcile_step later(struct tl_reconcile *reconcile, int64_t due_ms)
{
    reconcile->due_ms = due_ms;
    return TL_RECONCILE_ON;
}

/* ---- Redis ---- */

static struct tl_reply *ask_sessions(const struct tl_held_queue *held, const char *cursor,
                                     struct tl_error *err)
{
    struct tl_args args = {0};
    tl_call_begin_read(&args, TL_FN_RECONCILE_SESSIONS, &held->keys);
    tl_args_strs(&args, cursor, AT_ONCE, NULL);
    return tl_call_once(held->redis, &args, err);
}

static struct tl_reply *ask_line(const struct tl_held_queue *held, uint64_t past, uint64_t last,
                                 struct tl_error *err)
{
    struct tl_args args = {0};
    tl_call_begin_read(&args, TL_FN_RECONCILE_LINE, &held->keys);
    tl_args_uint(&args, past);
    tl_args_uint(&args, last);
    tl_args_str(&args, AT_ONCE);
    return tl_call_once(held->redis, &args, err);
}

/* Is the page of the generation and the server with which the round began? */
static bool is_same(const struct tl_reconcile *reconcile)
{
    return tl_reply_number(reconcile->page, TL_RECONCILE_GENERATION) == reconcile->generation &&
           strcmp(tl_reply_text(reconcile->page, TL_RECONCILE_STORE), reconcile->store) == 0;
}

/* ---- PostgreSQL ---- */

static PGresult *run(struct tl_database *database, const char *sql, int n,
                     const char *const *values, struct tl_error *err)
{
    return tl_postgres_run(&database->postgres, sql, n, values, err);
}

/* Has PostgreSQL this event of the generation? Looks up how many differences there are.
 * generation_id is 0 then if PostgreSQL no longer has that generation. */
static bool look_at_database(struct tl_reconcile *reconcile, struct tl_database *database,
                             uint64_t event, bool *is_written, struct tl_error *err)
{
    char id[TL_POSTGRES_TEXT], noted[TL_POSTGRES_TEXT];
    const char *const values[] = {tl_postgres_text((uint64_t)reconcile->generation_id, id),
                                  tl_postgres_text(event, noted)};
    PGresult *found = run(database,
                          "SELECT event >= $2, (SELECT count(*) FROM queue_differences WHERE "
                          "generation_id = $1) FROM queue_generations WHERE generation_id = $1",
                          2, values, err);
    *is_written = PQntuples(found) > 0 && PQgetvalue(found, 0, 0)[0] == 't';
    if (PQntuples(found) > 0)
        reconcile->differences = strtoll(PQgetvalue(found, 0, 1), NULL, 10);
    else if (found != NULL)
        reconcile->generation_id = 0;
    PQclear(found);
    return found != NULL;
}

/* Logs the differences that were found. */
static void say(const char *queue, const PGresult *differences)
{
    for (int i = 0; i < PQntuples(differences); i++)
        tl_log(TL_LOG_ERROR, &(struct tl_log_fields){.queue = queue},
               "Redis and the archive differ: %s", PQgetvalue(differences, i, 0));
}

/* Visitors in this state as of this event. In this range of seqs, behind `past` up to `last`, there
 * may be no others. */
struct comparison {
    const char *state;
    uint64_t event, past, last;
    const struct tl_portion *portion;
};

/* Compares them with the entries, and logs what differs. */
static bool compare(struct tl_reconcile *reconcile, struct tl_database *database, const char *queue,
                    const struct comparison *with, struct tl_error *err)
{
    char id[TL_POSTGRES_TEXT], event[TL_POSTGRES_TEXT], began[TL_POSTGRES_TEXT],
        past[TL_POSTGRES_TEXT], last[TL_POSTGRES_TEXT];
    struct tl_portion_texts texts;
    if (!tl_portion_texts(with->portion, &texts, err))
        return false;
    const char *const values[] = {tl_postgres_text((uint64_t)reconcile->generation_id, id),
                                  with->state,
                                  tl_postgres_text(with->event, event),
                                  tl_postgres_text(reconcile->event, began),
                                  tl_postgres_text(with->past, past),
                                  tl_postgres_text(with->last, last),
                                  texts.seqs.data,
                                  texts.lanes.data,
                                  texts.visitors.data,
                                  texts.deadlines.data};
    PGresult *found = run(database,
                          "SELECT * FROM compare($1, $2, $3, $4, $5, $6, $7, $8, "
                          "string_to_array($9, ' '), $10)",
                          10, values, err);
    say(queue, found);
    bool ok = found != NULL, is_written;
    PQclear(found);
    tl_portion_texts_free(&texts);
    return ok && look_at_database(reconcile, database, 0, &is_written, err);
}

/* ---- the round ---- */

/* Takes over what Redis counts. What is old is dropped here, and can no longer be counted. */
static void take_ended(struct tl_reconcile *reconcile, int64_t kept_ms)
{
    const struct tl_reply *ended = tl_reply_at(reconcile->page, TL_RECONCILE_ENDED);
    if (tl_reply_count(ended) != 2 + ENDS || tl_reply_signed(ended, 1) >= kept_ms)
        return;
    reconcile->counted_from = tl_reply_number(ended, 0);
    reconcile->counted_ms = tl_reply_signed(ended, 1);
    for (size_t i = 0; i < ENDS; i++)
        reconcile->ended[i] = tl_reply_signed(ended, 2 + i);
}

static enum tl_reconcile_step begin(struct tl_reconcile *reconcile, struct tl_database *database,
                                    const struct tl_held_queue *held,
                                    const struct tl_config *config, int64_t now_ms,
                                    struct tl_error *err)
{
    const int64_t round_ms = config->archive.reconcile_ms;
    char generation[TL_POSTGRES_TEXT];
    reconcile->page = ask_sessions(held, "0", err);
    if (reconcile->page == NULL)
        return TL_RECONCILE_STORE_FAILED;
    if (tl_reply_number(reconcile->page, TL_RECONCILE_IS_WHOLE) != 1) {
        tl_reconcile_reset(reconcile);
        return later(reconcile, now_ms + LATER_MS);
    }
    reconcile->generation = tl_reply_number(reconcile->page, TL_RECONCILE_GENERATION);
    reconcile->event = tl_reply_number(reconcile->page, TL_RECONCILE_EVENT);
    snprintf(reconcile->store, sizeof(reconcile->store), "%s",
             tl_reply_text(reconcile->page, TL_RECONCILE_STORE));
    const char *const values[] = {held->keys.queue,
                                  tl_postgres_text(reconcile->generation, generation)};
    PGresult *found = run(database,
                          "INSERT INTO queue_rounds AS r (generation_id, began_at) SELECT "
                          "generation_id, clock_timestamp() FROM queue_generations JOIN queues "
                          "USING (queue_id) WHERE name = $1 AND generation = $2 ON CONFLICT "
                          "(generation_id) DO UPDATE SET began_at = excluded.began_at RETURNING "
                          "r.generation_id, r.began_at",
                          2, values, err);
    if (found == NULL)
        return TL_RECONCILE_DATABASE_FAILED;
    bool is_there = PQntuples(found) > 0;
    if (is_there) {
        const int64_t size = tl_reply_signed(reconcile->page, TL_RECONCILE_SIZE);
        reconcile->generation_id = (int)strtol(PQgetvalue(found, 0, 0), NULL, 10);
        snprintf(reconcile->began_at, sizeof(reconcile->began_at), "%s", PQgetvalue(found, 0, 1));
        reconcile->began_ms = now_ms;
        reconcile->pause_ms = reconcile->asked ? 0 : round_ms / (size / STEP_SIZE + 3);
        reconcile->phase = TL_RECONCILE_SESSIONS;
        take_ended(reconcile, config->archive.kept_ms);
    } else {
        tl_reconcile_reset(reconcile);
    }
    PQclear(found);
    return later(reconcile, is_there ? now_ms : now_ms + LATER_MS);
}

/* Compares how many of each kind have ended. */
static bool compare_ended(const struct tl_reconcile *reconcile, struct tl_database *database,
                          const char *queue, struct tl_error *err)
{
    char id[TL_POSTGRES_TEXT], event[TL_POSTGRES_TEXT], from[TL_POSTGRES_TEXT],
        ago[TL_POSTGRES_TEXT], ended[ENDS * TL_POSTGRES_TEXT] = "{",
                                            found[ENDS * TL_POSTGRES_TEXT] = "{";
    for (size_t i = 0; i < ENDS; i++) {
        const char *end = i + 1 < ENDS ? "," : "}";
        size_t at = strlen(ended), there = strlen(found);
        snprintf(ended + at, sizeof(ended) - at, "%" PRId64 "%s", reconcile->ended[i], end);
        snprintf(found + there, sizeof(found) - there, "%" PRId64 "%s", reconcile->found[i], end);
    }
    const char *const values[] = {tl_postgres_text((uint64_t)reconcile->generation_id, id),
                                  tl_postgres_text(reconcile->event, event),
                                  tl_postgres_text(reconcile->counted_from, from),
                                  tl_postgres_text((uint64_t)reconcile->counted_ms, ago),
                                  reconcile->began_at,
                                  ended,
                                  found};
    PGresult *differ = run(database,
                           "SELECT * FROM compare_ended($1, $2, $3, date_trunc('second', "
                           "$5::timestamptz - $4::bigint * interval '1 ms'), $6, $7)",
                           7, values, err);
    say(queue, differ);
    PQclear(differ);
    return differ != NULL;
}

static enum tl_reconcile_step finish(struct tl_reconcile *reconcile, struct tl_database *database,
                                     const char *queue, int64_t round_ms, int64_t now_ms,
                                     struct tl_error *err)
{
    char id[TL_POSTGRES_TEXT];
    const char *const values[] = {tl_postgres_text((uint64_t)reconcile->generation_id, id),
                                  reconcile->began_at};
    const int64_t next_ms = reconcile->began_ms + round_ms;
    bool ok = (reconcile->counted_from == 0 || compare_ended(reconcile, database, queue, err)) &&
              tl_postgres_do(&database->postgres,
                             "UPDATE queue_rounds SET done_at = greatest(done_at, "
                             "$2::timestamptz) WHERE generation_id = $1",
                             2, values, err);
    reconcile->asked = false;
    tl_reconcile_reset(reconcile);
    later(reconcile, next_ms > now_ms ? next_ms : now_ms);
    return ok ? TL_RECONCILE_ON : TL_RECONCILE_DATABASE_FAILED;
}

static int compare_seqs(const void *a, const void *b)
{
    const uint64_t *first = a, *second = b;
    return (*first > *second) - (*first < *second);
}

static bool keep_seen(struct tl_reconcile *reconcile, const struct tl_portion *portion,
                      struct tl_error *err)
{
    uint64_t *grown = tl_grow(reconcile->seen, &reconcile->seen_capacity,
                              reconcile->n_seen + portion->n + 1, sizeof(*grown));
    if (grown == NULL)
        return tl_error_set(err, TL_ERR_NOMEM, "no memory for those who are active");
    reconcile->seen = grown;
    for (size_t i = 0; i < portion->n; i++)
        grown[reconcile->n_seen++] = tl_place_seq(portion->of[i].place);
    return true;
}

static bool compare_sessions(struct tl_reconcile *reconcile, struct tl_database *database,
                             const char *queue, size_t *n, struct tl_error *err)
{
    struct tl_portion portion = {0};
    const uint64_t event = tl_reply_number(reconcile->page, TL_RECONCILE_EVENT);
    bool ok =
        tl_portion_read(&portion, tl_reply_at(reconcile->page, TL_RECONCILE_ROWS), true,
                        tl_database_key(database), err) &&
        keep_seen(reconcile, &portion, err) &&
        compare(reconcile, database, queue,
                &(struct comparison){.state = "active", .event = event, .portion = &portion}, err);
    *n = portion.n;
    snprintf(reconcile->cursor, sizeof(reconcile->cursor), "%s",
             tl_reply_text(reconcile->page, TL_RECONCILE_NEXT));
    if (ok && strcmp(reconcile->cursor, "0") == 0) {
        qsort(reconcile->seen, reconcile->n_seen, sizeof(*reconcile->seen), compare_seqs);
        reconcile->phase = TL_RECONCILE_LINE;
        reconcile->past = 0;
    }
    tl_portion_free(&portion);
    return ok;
}

/* Of these seqs, those that the scan did not find. They are active since before. */
static bool compare_missing(struct tl_reconcile *reconcile, struct tl_database *database,
                            const char *queue, const char *seqs, struct tl_error *err)
{
    bool ok = true;
    char *end;
    for (; ok && *seqs != '\0' && reconcile->differences < MOST; seqs = end) {
        const uint64_t seq = strtoull(seqs, &end, 10);
        if (bsearch(&seq, reconcile->seen, reconcile->n_seen, sizeof(seq), compare_seqs) == NULL)
            ok = compare(reconcile, database, queue,
                         &(struct comparison){.state = "active",
                                              .event = reconcile->event,
                                              .past = seq - 1,
                                              .last = seq,
                                              .portion = &(struct tl_portion){0}},
                         err);
    }
    return ok;
}

#define ENDED(status)                                                                              \
    ", count(*) FILTER (WHERE status = '" status "' AND event > $6 AND event <= $5)"

/* The checksum of those who wait in the range, who is active there since before the round, how many
 * entries it has, and how many of them ended in the time that is compared, by kind. */
static PGresult *sum_up(const struct tl_reconcile *reconcile, struct tl_database *database,
                        struct tl_error *err)
{
    char id[TL_POSTGRES_TEXT], past[TL_POSTGRES_TEXT], last[TL_POSTGRES_TEXT],
        event[TL_POSTGRES_TEXT], began[TL_POSTGRES_TEXT], from[TL_POSTGRES_TEXT];
    const char *const values[] = {
        tl_postgres_text((uint64_t)reconcile->generation_id, id),
        tl_postgres_text(reconcile->past, past),
        tl_postgres_text(reconcile->last, last),
        tl_postgres_text(tl_reply_number(reconcile->page, TL_RECONCILE_EVENT), event),
        tl_postgres_text(reconcile->event, began),
        tl_postgres_text(reconcile->counted_from, from)};
    return run(
        database,
        "SELECT encode(sha256(convert_to(coalesce(string_agg(visitor || ' ' || lane || ' ' "
        "|| seq || E'\\n', '' ORDER BY seq) FILTER (WHERE status = 'waiting' AND (event <= $4 "
        "OR event > written)), ''), 'UTF8')), 'hex'), coalesce(string_agg(seq::text, ' ') "
        "FILTER (WHERE status = 'active' AND (event <= $5 OR event > written)), ''), "
        "count(*)" ENDED("completed") ENDED("left") ENDED("expired") ENDED("unclaimed")
            ENDED("absent") ENDED("removed") " FROM queue_entries, (SELECT event AS written FROM "
                                             "queue_generations WHERE "
                                             "generation_id = $1) AS g WHERE generation_id = $1 "
                                             "AND seq > $2 AND seq <= $3",
        6, values, err);
}

static bool compare_line(struct tl_reconcile *reconcile, struct tl_database *database,
                         const char *queue, size_t *n, struct tl_error *err)
{
    char sum[TL_PORTION_SUM_SIZE];
    struct tl_portion portion = {0};
    const uint64_t event = tl_reply_number(reconcile->page, TL_RECONCILE_EVENT);
    reconcile->last = tl_reply_number(reconcile->page, TL_RECONCILE_NEXT);
    PGresult *found = sum_up(reconcile, database, err);
    bool ok = found != NULL &&
              tl_portion_read(&portion, tl_reply_at(reconcile->page, TL_RECONCILE_ROWS), false,
                              tl_database_key(database), err) &&
              tl_portion_sum(&portion, sum, err);
    if (ok && (strcmp(sum, PQgetvalue(found, 0, 0)) != 0 || reconcile->differences > 0))
        ok = compare(reconcile, database, queue,
                     &(struct comparison){.state = "waiting",
                                          .event = event,
                                          .past = reconcile->past,
                                          .last = reconcile->last,
                                          .portion = &portion},
                     err);
    ok = ok && compare_missing(reconcile, database, queue, PQgetvalue(found, 0, 1), err);
    *n = ok ? portion.n + tl_postgres_number(found, 0, 2) : 0;
    for (int i = 0; ok && i < ENDS; i++)
        reconcile->found[i] += (int64_t)tl_postgres_number(found, 0, 3 + i);
    PQclear(found);
    tl_portion_free(&portion);
    reconcile->past = reconcile->last;
    return ok;
}

/* The end of the next range: not too many entries, and at the end of the table all seqs. */
static bool find_last(struct tl_reconcile *reconcile, struct tl_database *database,
                      struct tl_error *err)
{
    char id[TL_POSTGRES_TEXT], past[TL_POSTGRES_TEXT];
    const char *const values[] = {tl_postgres_text((uint64_t)reconcile->generation_id, id),
                                  tl_postgres_text(reconcile->past, past)};
    PGresult *found = run(database,
                          "SELECT seq FROM queue_entries WHERE generation_id = $1 AND seq > $2 "
                          "ORDER BY seq OFFSET " ROWS " LIMIT 1",
                          2, values, err);
    reconcile->last = PQntuples(found) > 0 ? tl_postgres_number(found, 0, 0) : TL_PLACE_SEQ_MAX;
    PQclear(found);
    return found != NULL;
}

/* Reads the next page. */
static enum tl_reconcile_step fetch(struct tl_reconcile *reconcile, struct tl_database *database,
                                    const struct tl_held_queue *held, int64_t now_ms,
                                    struct tl_error *err)
{
    if (reconcile->phase == TL_RECONCILE_LINE && !find_last(reconcile, database, err))
        return TL_RECONCILE_DATABASE_FAILED;
    reconcile->page = reconcile->phase == TL_RECONCILE_SESSIONS
                          ? ask_sessions(held, reconcile->cursor, err)
                          : ask_line(held, reconcile->past, reconcile->last, err);
    if (reconcile->page == NULL)
        return TL_RECONCILE_STORE_FAILED;
    if (!is_same(reconcile)) {
        tl_reconcile_reset(reconcile);
        return later(reconcile, now_ms + LATER_MS);
    }
    if (tl_reply_number(reconcile->page, TL_RECONCILE_IS_WHOLE) != 1) {
        drop_page(reconcile);
        return later(reconcile, now_ms + LATER_MS);
    }
    return later(reconcile, now_ms);
}

enum tl_reconcile_step tl_reconcile_serve(struct tl_reconcile *reconcile,
                                          struct tl_database *database,
                                          const struct tl_held_queue *held,
                                          const struct tl_config *config, int64_t now_ms,
                                          struct tl_error *err)
{
    const int64_t round_ms = config->archive.reconcile_ms;
    bool is_written, ok;
    size_t n = 0;
    if (reconcile->phase == TL_RECONCILE_NONE && round_ms == 0 && !reconcile->asked)
        return later(reconcile, INT64_MAX);
    enum tl_reconcile_step step = TL_RECONCILE_ON;
    if (reconcile->phase == TL_RECONCILE_NONE)
        step = begin(reconcile, database, held, config, now_ms, err);
    else if (reconcile->page == NULL)
        step = fetch(reconcile, database, held, now_ms, err);
    if (step != TL_RECONCILE_ON || reconcile->page == NULL)
        return step;
    if (!look_at_database(reconcile, database, tl_reply_number(reconcile->page, TL_RECONCILE_NOTED),
                          &is_written, err))
        return TL_RECONCILE_DATABASE_FAILED;
    if (reconcile->generation_id == 0) {
        drop_page(reconcile);
        reconcile->phase = TL_RECONCILE_NONE;
        reconcile->n_seen = 0;
        return later(reconcile, now_ms + LATER_MS);
    }
    if (!is_written)
        return later(reconcile, now_ms + WRITTEN_MS);
    ok = reconcile->phase == TL_RECONCILE_SESSIONS
             ? compare_sessions(reconcile, database, held->keys.queue, &n, err)
             : compare_line(reconcile, database, held->keys.queue, &n, err);
    drop_page(reconcile);
    if (!ok)
        return TL_RECONCILE_DATABASE_FAILED;
    reconcile->compared += n;
    if (reconcile->phase == TL_RECONCILE_LINE && reconcile->past == TL_PLACE_SEQ_MAX)
        return finish(reconcile, database, held->keys.queue, round_ms, now_ms, err);
    return later(reconcile, now_ms + (reconcile->asked ? 0 : reconcile->pause_ms));
}
