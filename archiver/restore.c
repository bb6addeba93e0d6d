/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "archiver/metrics.h"
#include "archiver/restore.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/config/queue_table.h"
#include "common/config/value.h"
#include "common/store/actor.h"
#include "common/store/library.h"
#include "common/store/reply.h"
#include "common/store/state.h"

#define FETCHED "5000" /* visitors, of one query */
/* What a query names is in this order in the arguments of the function. */
#define VISITORS                                                                                   \
    "SELECT visitor, lane * 281474976710656::bigint + seq, CASE status WHEN 'waiting' THEN 0 "     \
    "WHEN 'active' THEN coalesce(ceil(extract(epoch FROM deadline) * 1000)::bigint, 0) "           \
    "WHEN 'completed' THEN -1 WHEN 'left' THEN -2 WHEN 'unclaimed' THEN -4 WHEN 'absent' THEN -5 " \
    "WHEN 'removed' THEN -6 ELSE -3 END, coalesce(floor(extract(epoch FROM admitted_at) * "        \
    "1000)::bigint, 0), "                                                                          \
    "(claimed_at IS NOT NULL OR admitted_at IS NULL)::int, coalesce(serial, 0), seq FROM "         \
    "queue_entries AS q "                                                                          \
    "WHERE generation_id = $1 AND seq > $2 AND visitor IS NOT NULL AND "

/* Of those who have ended, as archiver/restore.lua counts them. */
#define TOTALS                                                                                     \
    "count(*) FILTER (WHERE status = 'completed'), count(*) FILTER (WHERE status = 'left'), "      \
    "count(*) FILTER (WHERE status > 'left'), count(*) FILTER (WHERE status = 'unclaimed'), "      \
    "count(*) FILTER (WHERE status = 'absent'), count(*) FILTER (WHERE status = 'removed'), "      \
    "count(*) FILTER (WHERE status > 'active' AND (admitted_at IS NOT NULL OR status IN "          \
    "('completed', 'unclaimed')))"

enum {
    COLUMNS = 6,
    AT_ONCE = 500,     /* visitors, in one call */
    RETRY_MS = 10000,  /* after what may pass */
    RECENT_MS = 60000, /* what an old copy lacks at most, to go on as of that */
};

/* ---- the function ---- */

static void begin_call(struct tl_args *args, const struct tl_held_queue *held, const char *step)
{
    tl_call_begin(args, TL_FN_RESTORE, &held->keys);
    tl_args_strs(args, TL_EVENTS_KEPT, step, NULL);
}

/* Calls it. An error, and a step that another archiver has done, makes this one idle. */
static enum tl_restore_step call(struct tl_restore *restore, const struct tl_held_queue *held,
                                 struct tl_args *args, uint64_t *cursor, int64_t *wait_ms,
                                 struct tl_error *err)
{
    struct tl_reply *reply = tl_call_once(held->redis, args, err);
    if (reply == NULL || tl_reply_signed(reply, TL_RESTORE_IS_NEXT) != 1)
        restore->active = false;
    if (cursor != NULL)
        *cursor = tl_reply_number(reply, TL_RESTORE_CURSOR);
    if (wait_ms != NULL)
        *wait_ms = tl_reply_signed(reply, TL_RESTORE_WAIT);
    restore->now_ms = tl_reply_number(reply, TL_RESTORE_NOW);
    restore->now_event = tl_reply_number(reply, TL_RESTORE_EVENT);
    tl_reply_free(reply);
    return reply == NULL ? TL_RESTORE_STORE_FAILED : TL_RESTORE_ON;
}

/* There is nothing to bring back, or it cannot be. */
static enum tl_restore_step give_up(struct tl_restore *restore, const struct tl_held_queue *held,
                                    const char *why, struct tl_error *err)
{
    struct tl_args args = {0};
    begin_call(&args, held, "none");
    tl_args_str(&args, why);
    return call(restore, held, &args, NULL, NULL, err);
}

/* A statement failed. Is PostgreSQL still there? Then it is the trouble of this queue, and said. */
static bool is_of_this_queue(const struct tl_database *database, const struct tl_held_queue *held,
                             struct tl_error *err)
{
    if (!tl_postgres_connected(&database->postgres))
        return false;
    tl_log(TL_LOG_ERROR, &(struct tl_log_fields){.queue = held->keys.queue, .error = err},
           "the archive cannot bring back all of the line");
    *err = (struct tl_error){.kind = TL_OK};
    return true;
}

/* The visitors cannot be read: the queue is left to its workers and tickets. What may pass is
 * tried again while the queue recovers, which this does not make longer. */
static enum tl_restore_step failed(struct tl_restore *restore, const struct tl_database *database,
                                   const struct tl_held_queue *held, struct tl_error *err)
{
    restore->active = false;
    if (!is_of_this_queue(database, held, err))
        return TL_RESTORE_DATABASE_FAILED;
    if (!database->postgres.may_pass)
        return give_up(restore, held, "database", err);
    restore->due_ms = tl_clock_ms() + RETRY_MS;
    return TL_RESTORE_ON;
}

/* ---- what the archive knows ---- */

/* The generation, and the stretch in field `back` (common/store/line/rewind.lua). */
static bool read_present(struct tl_restore *restore, const struct tl_held_queue *held,
                         struct tl_error *err)
{
    struct tl_reply *reply = tl_ask(held->redis, err, "HMGET", held->keys.names[TL_KEY_STATE],
                                    "generation", "back", NULL);
    restore->present = tl_reply_number(reply, 0);
    uint64_t since_ms = 0;
    uint64_t *const parts[] = {&restore->found, &restore->base, &restore->found_seq, &since_ms,
                               &restore->found_ms};
    const char *text = tl_reply_string(tl_reply_at(reply, 1), NULL);
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        char *end = NULL;
        *parts[i] = text != NULL ? strtoull(text, &end, 10) : 0;
        text = end != NULL && *end == ':' ? end + 1 : NULL;
    }
    tl_reply_free(reply);
    return reply != NULL;
}

/* A generation before the present one: the one that was written last, or the `skip`th before it.
 * One that was brought back itself, and of which the archive does not have all of that yet, comes
 * after all others. Its places are those of the last one; event 0: what any worker remembers of
 * that is later. *why: a word if it cannot be brought back, or NULL. */
static bool find_lost(struct tl_restore *restore, struct tl_database *database, const char *queue,
                      uint64_t skip, const char **why, struct tl_error *err)
{
    char present[TL_POSTGRES_TEXT], skipped[TL_POSTGRES_TEXT];
    const char *const values[] = {queue, tl_postgres_text(restore->present, present),
                                  tl_postgres_text(skip, skipped)};
    PGresult *found = tl_postgres_run(
        &database->postgres,
        "WITH known AS (SELECT g.*, EXISTS (SELECT FROM queue_gaps AS l WHERE l.generation_id = "
        "g.generation_id AND reason = 'lost' AND -l.event > g.event) AS is_part "
        "FROM queue_generations AS g JOIN queues USING (queue_id) "
        "WHERE name = $1 AND generation < $2::bigint AND last_at IS NOT NULL), "
        "last AS (SELECT generation AS of FROM known ORDER BY last_at DESC LIMIT 1) "
        "SELECT generation_id, last.of, CASE generation WHEN last.of THEN event ELSE 0 END, "
        "deleted_at IS NOT NULL, last_at > to_timestamp($2::bigint / 1000000.0) - interval "
        "'1 hour', told_whole FROM known, last ORDER BY is_part, last_at DESC OFFSET $3 LIMIT 1",
        3, values, err);
    if (found == NULL)
        return false;
    if (PQntuples(found) == 0) {
        *why = "unknown";
    } else if (PQgetvalue(found, 0, 3)[0] == 't') {
        *why = "deleted";
    } else if (database->pseudonyms) {
        *why = "pseudonyms";
    } else if (!restore->asked && PQgetvalue(found, 0, 4)[0] != 't') {
        *why = "old";
    } else {
        *why = NULL;
        restore->generation_id = (int)tl_postgres_number(found, 0, 0);
        restore->generation = tl_postgres_number(found, 0, 1);
        restore->event = tl_postgres_number(found, 0, 2);
        restore->is_whole = PQgetvalue(found, 0, 5)[0] == 't';
    }
    PQclear(found);
    return true;
}

/* fronts: none where the archive does not know yet all who waited. */
static bool count(struct tl_restore *restore, struct tl_database *database, struct tl_error *err)
{
    char id[TL_POSTGRES_TEXT];
    const char *const values[] = {tl_postgres_text((uint64_t)restore->generation_id, id)};
    PGresult *lanes = tl_postgres_run(
        &database->postgres,
        "SELECT lane, max(seq), coalesce(min(seq) FILTER (WHERE status = 'waiting') - 1, max(seq)),"
        " count(*) FILTER (WHERE status < 'completed'), " TOTALS
        " FROM queue_entries WHERE generation_id = $1 GROUP BY lane",
        1, values, err);
    restore->last_seq = restore->size = 0;
    memset(restore->totals, 0, sizeof(restore->totals));
    memset(restore->fronts, 0, sizeof(restore->fronts));
    for (int i = 0; i < PQntuples(lanes); i++) {
        uint64_t lane = tl_postgres_number(lanes, i, 0), last = tl_postgres_number(lanes, i, 1),
                 front = tl_postgres_number(lanes, i, 2);
        if (lane < TL_LANES_MAX && restore->is_whole)
            restore->fronts[lane] = front;
        restore->last_seq = last > restore->last_seq ? last : restore->last_seq;
        restore->size += tl_postgres_number(lanes, i, 3);
        for (int k = 0; k < TL_RESTORE_TOTALS; k++)
            restore->totals[k] += tl_postgres_number(lanes, i, 4 + k);
    }
    PQclear(lanes);
    return lanes != NULL;
}

/* Generations that nobody joined are skipped, unless there is no other one to bring back. */
static bool find_line(struct tl_restore *restore, struct tl_database *database, const char *queue,
                      const char **why, struct tl_error *err)
{
    bool ok = true;
    *why = NULL;
    restore->last_seq = 0;
    for (uint64_t skip = 0; ok && *why == NULL && restore->last_seq == 0; skip++) {
        ok = find_lost(restore, database, queue, skip, why, err);
        if (ok && *why != NULL && skip > 0)
            return find_lost(restore, database, queue, 0, why, err) &&
                   count(restore, database, err);
        ok = ok && (*why != NULL || count(restore, database, err));
    }
    return ok;
}

/* ---- an old copy of the present generation ---- */

/* Nothing can be put into the copy. Nobody is admitted until an operator has chosen, who may have
 * put that copy there. */
static enum tl_restore_step let_choose(struct tl_restore *restore,
                                       const struct tl_database *database,
                                       const struct tl_held_queue *held, struct tl_error *err)
{
    struct tl_args args = {0};
    const bool is_drawn = restore->newer == restore->present;
    if (restore->seen_base != restore->base)
        tl_log(TL_LOG_ERROR, &(struct tl_log_fields){.queue = held->keys.queue},
               "the store has come back from %s. Nobody is admitted until you choose: `tellerline "
               "queue recover --now` goes on with the line that is here, %s",
               is_drawn ? "an old copy, and a draw was held since"
                        : "before it lost the queue, and the archive knows the line that came then",
               is_drawn ? "which is drawn again; docs/operators/archive.md says how the one that "
                          "was drawn comes back"
               : database->pseudonyms
                   ? "`tellerline queue delete` and `tellerline queue create` begin an empty one"
                   : "`tellerline restore` replaces it by the one that the archive knows");
    restore->seen_base = restore->base;
    begin_call(&args, held, "newer");
    tl_args_uint(&args, is_drawn || database->pseudonyms ? 0 : restore->newer);
    return call(restore, held, &args, NULL, NULL, err);
}

/* The present generation in PostgreSQL. *why: a word if it cannot be brought back, or NULL. */
static bool find_present(struct tl_restore *restore, struct tl_database *database,
                         const char *queue, const char **why, struct tl_error *err)
{
    char present[TL_POSTGRES_TEXT];
    const char *const values[] = {queue, tl_postgres_text(restore->present, present)};
    PGresult *rows = tl_postgres_run(
        &database->postgres,
        "SELECT generation_id, deleted_at IS NOT NULL, "
        "coalesce(extract(epoch FROM last_at) * 1000, 0)::bigint, "
        "coalesce((SELECT max(generation) FROM queue_generations AS n WHERE n.queue_id = "
        "g.queue_id AND n.generation > g.generation AND deleted_at IS NULL AND "
        "n.last_at > g.last_at), 0) FROM queue_generations AS g JOIN queues USING (queue_id) "
        "WHERE name = $1 AND generation = $2",
        2, values, err);
    if (rows == NULL)
        return false;
    restore->newer = PQntuples(rows) > 0 ? tl_postgres_number(rows, 0, 3) : 0;
    if (PQntuples(rows) == 0)
        *why = "whole";
    else if (PQgetvalue(rows, 0, 1)[0] == 't')
        *why = "deleted";
    else
        *why = database->pseudonyms ? "pseudonyms" : NULL;
    if (*why == NULL) {
        restore->generation_id = (int)tl_postgres_number(rows, 0, 0);
        restore->last_ms = tl_postgres_number(rows, 0, 2);
    }
    PQclear(rows);
    return true;
}

/* What the archive knows more of it than the store: *why is a word if that is nothing, or NULL.
 * is_drawn: the draw was done already as of the copy; else places that were drawn meanwhile would
 * be drawn again. */
static bool find_later(struct tl_restore *restore, struct tl_database *database, bool is_drawn,
                       const char **why, struct tl_error *err)
{
    char id[TL_POSTGRES_TEXT], found[TL_POSTGRES_TEXT], base[TL_POSTGRES_TEXT];
    /* The partition is known when the statement begins: it reads no other one. */
    const char *const values[] = {tl_postgres_text((uint64_t)restore->generation_id, id),
                                  tl_postgres_text(restore->found, found),
                                  tl_postgres_text(restore->base, base)};
    PGresult *rows =
        tl_postgres_run(&database->postgres,
                        "SELECT coalesce(max(event), 0), coalesce(max(seq), 0), "
                        "count(*) FILTER (WHERE joined_seq IS NOT NULL), "
                        "count(*) FILTER (WHERE status < 'completed') FROM queue_entries "
                        "WHERE generation_id = $1 AND event > $2 AND event < $3",
                        3, values, err);
    if (rows == NULL)
        return false;
    restore->generation = restore->present;
    restore->event = tl_postgres_number(rows, 0, 0);
    restore->last_seq = tl_postgres_number(rows, 0, 1);
    restore->size = tl_postgres_number(rows, 0, 3);
    if (restore->event == 0)
        *why = "whole";
    else if (!is_drawn && tl_postgres_number(rows, 0, 2) > 0 && restore->newer == 0)
        restore->newer = restore->present;
    PQclear(rows);
    return true;
}

/* Totals of those who came and went in the stretch. */
static bool count_later(struct tl_restore *restore, struct tl_database *database,
                        struct tl_error *err)
{
    char id[TL_POSTGRES_TEXT], found[TL_POSTGRES_TEXT], base[TL_POSTGRES_TEXT],
        seq[TL_POSTGRES_TEXT];
    const char *const values[] = {tl_postgres_text((uint64_t)restore->generation_id, id),
                                  tl_postgres_text(restore->found, found),
                                  tl_postgres_text(restore->base, base),
                                  tl_postgres_text(restore->found_seq, seq)};
    PGresult *rows = tl_postgres_run(&database->postgres,
                                     "SELECT " TOTALS " FROM queue_entries WHERE generation_id = "
                                     "$1 AND event > $2 AND event < $3 AND seq > $4",
                                     4, values, err);
    memset(restore->fronts, 0, sizeof(restore->fronts));
    for (int k = 0; rows != NULL && k < TL_RESTORE_TOTALS; k++)
        restore->totals[k] = tl_postgres_number(rows, 0, k);
    PQclear(rows);
    return rows != NULL;
}

/* The last that the archive knows of each visitor: an open place, else the one of the latest event.
 */
static PGresult *fetch_later(struct tl_restore *restore, struct tl_database *database,
                             struct tl_error *err)
{
    char id[TL_POSTGRES_TEXT], after[TL_POSTGRES_TEXT], found[TL_POSTGRES_TEXT],
        base[TL_POSTGRES_TEXT];
    const char *const values[] = {tl_postgres_text((uint64_t)restore->generation_id, id),
                                  tl_postgres_text(restore->cursor, after),
                                  tl_postgres_text(restore->found, found),
                                  tl_postgres_text(restore->base, base)};
    return tl_postgres_run(&database->postgres,
                           VISITORS
                           "event > $3 AND event < $4 AND status IS NOT NULL AND NOT EXISTS "
                           "(SELECT FROM queue_entries AS o WHERE o.generation_id = $1 AND "
                           "o.visitor = q.visitor AND o.seq <> q.seq AND o.event < $4 AND "
                           "(o.status < 'completed', o.event, o.seq) > "
                           "(q.status < 'completed', q.event, q.seq)) ORDER BY seq LIMIT " FETCHED,
                           4, values, err);
}

/* ---- begin ---- */

static void say_what_begins(struct tl_restore *restore, const struct tl_held_queue *held)
{
    if (restore->back && restore->seen_base != restore->base && restore->found == 0)
        tl_log(TL_LOG_WARN, &(struct tl_log_fields){.queue = held->keys.queue},
               "a part of the queue is missing in the store%s",
               restore->may_begin ? ": it comes back from the archive"
                                  : ": `tellerline restore` brings it back from the archive");
    else if (restore->back && restore->seen_base != restore->base)
        tl_log(TL_LOG_WARN, &(struct tl_log_fields){.queue = held->keys.queue},
               "the store has come back from an old copy, as of event %" PRIu64 ", and the archive "
               "knows of event %" PRIu64 "%s",
               restore->found, restore->event,
               restore->may_begin ? ": what happened since comes back"
                                  : ": `tellerline restore` brings back what happened since");
    else if (!restore->back)
        tl_log(TL_LOG_WARN, &(struct tl_log_fields){.queue = held->keys.queue},
               "the store has lost the queue: %" PRIu64 " who waited or were active as of event "
               "%" PRIu64 "%s come back from the archive",
               restore->size, restore->event,
               restore->event > 0 ? "" : ", in a generation before the last one,");
    restore->seen_base = restore->base;
}

/* What there is to bring back; *why: a word if there is nothing, or NULL. */
static bool find(struct tl_restore *restore, struct tl_database *database, const char *queue,
                 bool is_drawn, const char **why, struct tl_error *err)
{
    if (!restore->back)
        return find_line(restore, database, queue, why, err);
    return find_present(restore, database, queue, why, err) &&
           (*why != NULL || find_later(restore, database, is_drawn, why, err)) &&
           (*why != NULL || count_later(restore, database, err));
}

/* asked: by an operator; else only if the last event of the archive is not older than an hour. */
static enum tl_restore_step begin(struct tl_restore *restore, struct tl_database *database,
                                  const struct tl_held_queue *held, int64_t now_ms,
                                  struct tl_error *err)
{
    const char *why;
    int64_t wait_ms;
    struct tl_args args = {0};
    struct tl_state state;
    if (!read_present(restore, held, err) ||
        !tl_state_read(held->redis, &held->keys, TL_STATE_DRAW, &state, err))
        return TL_RESTORE_STORE_FAILED;
    if (restore->back && !restore->may_begin && restore->seen_base == restore->base &&
        restore->newer == 0)
        return TL_RESTORE_ON; /* it was said already */
    bool is_drawn = state.recovery.draw.phase == TL_DRAW_DONE;
    if (!find(restore, database, held->keys.queue, is_drawn, &why, err))
        return failed(restore, database, held, err);
    if (restore->back && restore->newer > 0)
        return let_choose(restore, database, held, err);
    /* A store that was away for long may have lost its last second alone, which tickets and workers
     * give back: nobody is to be held up for that. */
    if (why == NULL && restore->back && !restore->may_begin &&
        restore->last_ms < restore->found_ms + RECENT_MS)
        why = "recent";
    if (why != NULL)
        return give_up(restore, held, why, err);
    if (!restore->may_begin) {
        say_what_begins(restore, held);
        return TL_RESTORE_ON;
    }
    begin_call(&args, held, "begin");
    tl_args_uint(&args, restore->generation);
    tl_args_uint(&args, restore->event);
    tl_args_uint(&args, restore->last_seq);
    tl_args_uint(&args, restore->size);
    restore->active = true;
    restore->of_present = restore->back;
    enum tl_restore_step step = call(restore, held, &args, &restore->cursor, &wait_ms, err);
    restore->due_ms = now_ms + wait_ms;
    if (restore->active)
        say_what_begins(restore, held);
    return step;
}

/* ---- settings ---- */

/* What operators had set before the present generation was made: each setting as it was changed
 * last, the time of the last change (`changed`, us), and the notice, unless the queue was created
 * again after it. The time of a creation may be some ms before that of the generation it made. */
#define SETTINGS                                                                                   \
    "WITH told AS (SELECT entry_ms, entry_nth, what, after FROM queue_changes JOIN queues USING "  \
    "(queue_id) WHERE name = $1 AND entry_ms < $2::bigint / 1000 - (what = 'create')::int * 1000 " \
    "AND what IN ('create', 'set', 'mode', 'restore', 'notice')), "                                \
    "last AS (SELECT DISTINCT ON (key) key, value, entry_ms FROM told, jsonb_each_text(after) "    \
    "ORDER BY key, entry_ms DESC, entry_nth DESC) "                                                \
    "SELECT key, value FROM last WHERE key <> 'notice' OR entry_ms >= "                            \
    "(SELECT coalesce(max(entry_ms), 0) FROM told WHERE what = 'create') "                         \
    "UNION ALL SELECT 'changed', (coalesce(max(entry_ms), 0) * 1000)::text FROM told "             \
    "WHERE what NOT IN ('create', 'notice')"

/* Programs that mend the store record counters as they record settings. */
static bool is_setting(const char *name)
{
    size_t n;
    const struct tl_setting *rows = tl_queue_table(&n);
    return strcmp(name, "changed") == 0 || tl_setting_find(rows, n, name, NULL) != NULL;
}

static enum tl_restore_step bring_settings(struct tl_restore *restore, struct tl_process *process,
                                           struct tl_database *database,
                                           const struct tl_held_queue *held, struct tl_error *err)
{
    char present[TL_POSTGRES_TEXT];
    const char *notice = "";
    const char *const values[] = {held->keys.queue, tl_postgres_text(restore->present, present)};
    struct tl_actor actor;
    struct tl_args args = {0};
    PGresult *rows = tl_postgres_run(&database->postgres, SETTINGS, 2, values, err);
    if (rows == NULL)
        return failed(restore, database, held, err);
    for (int i = 0; i < PQntuples(rows); i++)
        if (strcmp(PQgetvalue(rows, i, 0), "notice") == 0)
            notice = PQgetvalue(rows, i, 1);
    begin_call(&args, held, "settings");
    tl_args_str(&args, notice);
    for (int i = 0; i < PQntuples(rows); i++)
        if (is_setting(PQgetvalue(rows, i, 0)))
            tl_args_strs(&args, PQgetvalue(rows, i, 0), PQgetvalue(rows, i, 1), NULL);
    PQclear(rows);
    tl_actor_of_program(&actor, "archiver", process->config->retention.changes_entries);
    tl_actor_append(&actor, &args);
    return call(restore, held, &args, NULL, NULL, err);
}

/* ---- visitors ---- */

static PGresult *fetch(struct tl_restore *restore, struct tl_database *database,
                       struct tl_error *err)
{
    char id[TL_POSTGRES_TEXT], after[TL_POSTGRES_TEXT], now[TL_POSTGRES_TEXT],
        fronts[TL_LANES_MAX * TL_POSTGRES_TEXT + 2] = "{";
    size_t length = 1;
    for (size_t lane = 0; lane < TL_LANES_MAX; lane++)
        length += (size_t)snprintf(fronts + length, sizeof(fronts) - length, "%" PRIu64 "%c",
                                   restore->fronts[lane], lane + 1 < TL_LANES_MAX ? ',' : '}');
    const char *const values[] = {tl_postgres_text((uint64_t)restore->generation_id, id),
                                  tl_postgres_text(restore->cursor % TL_LANE, after), fronts,
                                  tl_postgres_text(restore->now_ms, now)};
    return restore->cursor < TL_LANE
               ? tl_postgres_run(&database->postgres,
                                 VISITORS "status = 'active' ORDER BY seq LIMIT " FETCHED, 2,
                                 values, err)
               : tl_postgres_run(&database->postgres,
                                 VISITORS "(status = 'waiting' OR status > 'active' AND "
                                          "(seq > ($3::bigint[])[lane + 1] OR "
                                          "deadline > to_timestamp($4::float8 / 1000))) "
                                          "ORDER BY seq LIMIT " FETCHED,
                                 4, values, err);
}

/* Rows from `first` on, at most AT_ONCE; the cursor moves on to `next`. */
static enum tl_restore_step bring(struct tl_restore *restore, const struct tl_held_queue *held,
                                  const PGresult *rows, int first, uint64_t next,
                                  struct tl_error *err)
{
    struct tl_args args = {0};
    int n = PQntuples(rows) < first + AT_ONCE ? PQntuples(rows) : first + AT_ONCE;
    begin_call(&args, held, "rows");
    tl_args_uint(&args, restore->generation);
    tl_args_uint(&args, restore->cursor);
    tl_args_uint(&args, next);
    for (int row = first; row < n; row++)
        for (int column = 0; column < COLUMNS; column++)
            tl_args_str(&args, PQgetvalue(rows, row, column));
    restore->cursor = next;
    return call(restore, held, &args, NULL, NULL, err);
}

static enum tl_restore_step finish(struct tl_restore *restore, struct tl_process *process,
                                   struct tl_database *database, const struct tl_held_queue *held,
                                   struct tl_error *err)
{
    uint64_t returned;
    struct tl_args args = {0};
    if (!restore->of_present &&
        !tl_database_note_lost(database, restore->generation_id, restore->present,
                               restore->now_event, err) &&
        !is_of_this_queue(database, held, err)) {
        restore->active = false;
        return TL_RESTORE_DATABASE_FAILED;
    }
    begin_call(&args, held, "done");
    tl_args_uint(&args, restore->generation);
    for (int i = 0; i < TL_RESTORE_TOTALS; i++)
        tl_args_uint(&args, restore->totals[i]);
    for (uint64_t lane = 0; lane < TL_LANES_MAX; lane++) {
        tl_args_uint(&args, lane);
        tl_args_uint(&args, restore->fronts[lane]);
    }
    enum tl_restore_step step = call(restore, held, &args, &returned, NULL, err);
    if (restore->active) {
        tl_metrics_add(process->metrics, TL_ARCHIVED_RESTORED, (int64_t)returned);
        tl_log(TL_LOG_INFO, &(struct tl_log_fields){.queue = held->keys.queue},
               "%" PRIu64 " visitors came back from the archive", returned);
    }
    restore->active = false;
    return step;
}

static enum tl_restore_step go_on(struct tl_restore *restore, struct tl_process *process,
                                  struct tl_database *database, const struct tl_held_queue *held,
                                  struct tl_error *err)
{
    PGresult *rows =
        restore->of_present ? fetch_later(restore, database, err) : fetch(restore, database, err);
    if (rows == NULL)
        return failed(restore, database, held, err);
    enum tl_restore_step step = TL_RESTORE_ON;
    const uint64_t kind = restore->cursor - restore->cursor % TL_LANE;
    int n = PQntuples(rows);
    if (n == 0)
        step = kind == 0 && !restore->of_present ? bring(restore, held, rows, 0, TL_LANE, err)
                                                 : finish(restore, process, database, held, err);
    for (int first = 0; restore->active && first < n; first += AT_ONCE) {
        int last = first + AT_ONCE < n ? first + AT_ONCE - 1 : n - 1;
        step =
            bring(restore, held, rows, first, kind + tl_postgres_number(rows, last, COLUMNS), err);
    }
    PQclear(rows);
    return step;
}

enum tl_restore_step tl_restore_serve(struct tl_restore *restore, struct tl_process *process,
                                      struct tl_database *database,
                                      const struct tl_held_queue *held, int64_t now_ms,
                                      struct tl_error *err)
{
    if (now_ms < restore->due_ms)
        return TL_RESTORE_ON;
    const int64_t wanted = restore->wanted;
    restore->wanted = 0;
    if (restore->active)
        return go_on(restore, process, database, held, err);
    restore->asked = wanted == 2;
    restore->may_begin = restore->asked || process->config->archive.restore == TL_RESTORE_AUTO;
    if (wanted == 0 || !(restore->may_begin || restore->back))
        return TL_RESTORE_ON;
    enum tl_restore_step step = begin(restore, database, held, now_ms, err);
    return step == TL_RESTORE_ON && restore->active && !restore->of_present
               ? bring_settings(restore, process, database, held, err)
               : step;
}
