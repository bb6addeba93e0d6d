/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker/archive/reading.h"

enum {
    STRETCHES_MAX = 1 << 18,
    FRESH_MS = 10000, /* an outline, or that there is none, counts this long */
};

void tl_reading_clear(struct tl_reading *reading)
{
    tl_postgres_close(&reading->postgres);
    for (size_t i = 0; i < TL_OUTLINES; i++)
        free(reading->outlines[i].stretches);
    memset(reading->outlines, 0, sizeof(reading->outlines));
}

/* ---- the generation ---- */

/* The last generation of a queue. */
struct generation {
    int id;
    uint64_t number, event;
    int64_t as_of_ms;
    bool deleted;
};

static bool find_generation(struct tl_reading *reading, const char *queue, struct generation *found,
                            struct tl_error *err)
{
    const char *const values[] = {queue};
    PGresult *rows = tl_postgres_run(
        &reading->postgres,
        "SELECT generation_id, event, (extract(epoch FROM last_at) * 1000)::bigint, "
        "deleted_at IS NOT NULL, generation FROM queues JOIN queue_generations USING (queue_id) "
        "WHERE name = $1 ORDER BY generation DESC LIMIT 1",
        1, values, err);
    if (rows == NULL)
        return false;
    *found = (struct generation){0};
    if (PQntuples(rows) > 0)
        *found = (struct generation){.id = (int)tl_postgres_number(rows, 0, 0),
                                     .event = tl_postgres_number(rows, 0, 1),
                                     .as_of_ms = (int64_t)tl_postgres_number(rows, 0, 2),
                                     .deleted = PQgetvalue(rows, 0, 3)[0] == 't',
                                     .number = tl_postgres_number(rows, 0, 4)};
    PQclear(rows);
    return true;
}

/* ---- the outline ---- */

/* That of this generation; a new one takes the place of the oldest. */
static struct tl_outline *outline_of(struct tl_reading *reading, int generation_id)
{
    struct tl_outline *oldest = &reading->outlines[0];
    for (size_t i = 0; i < TL_OUTLINES; i++) {
        struct tl_outline *outline = &reading->outlines[i];
        if (outline->generation_id == generation_id)
            return outline;
        if (outline->rules_ms < oldest->rules_ms)
            oldest = outline;
    }
    free(oldest->stretches);
    *oldest = (struct tl_outline){.generation_id = generation_id};
    return oldest;
}

/* Is what was read then still to be used? */
static bool is_fresh(const struct tl_reading *reading, int64_t read_ms)
{
    return read_ms != 0 && reading->now_ms - read_ms < FRESH_MS;
}

/* The value that a setting of the queue was given last. */
#define LAST(name)                                                                                 \
    "(SELECT after->>'" name "' FROM queue_changes AS c WHERE c.queue_id = g.queue_id AND "        \
    "after->>'" name "' IS NOT NULL ORDER BY entry_ms DESC, entry_nth DESC LIMIT 1)"

/* Which rules the line has, as the record of changes says: a search, done now and then. They are
 * not known while nothing of the record has come, which begins with the creation of the queue. */
static bool take_rules(struct tl_reading *reading, struct tl_outline *outline, struct tl_error *err)
{
    char id[TL_POSTGRES_TEXT];
    const char *const values[] = {tl_postgres_text((uint64_t)outline->generation_id, id)};
    if (is_fresh(reading, outline->rules_ms))
        return true;
    static const char sql[] = "SELECT coalesce(" LAST(
        "lane_weights") ", '') = '' AND EXISTS (SELECT FROM queue_changes "
                        "AS c WHERE c.queue_id = g.queue_id), coalesce(" LAST(
                            "order") ", '') = 'draw' "
                                     "FROM queue_generations AS g WHERE generation_id = $1";
    PGresult *rows = tl_postgres_run(&reading->postgres, sql, 1, values, err);
    outline->rules_ms = reading->now_ms;
    outline->by_lanes = rows != NULL && PQntuples(rows) > 0 && PQgetvalue(rows, 0, 0)[0] == 't';
    outline->is_drawn = rows != NULL && PQntuples(rows) > 0 && PQgetvalue(rows, 0, 1)[0] == 't';
    PQclear(rows);
    return tl_postgres_connected(&reading->postgres);
}

static void take_stretches(struct tl_outline *outline, const PGresult *rows)
{
    uint64_t before = 0;
    outline->n = (size_t)PQntuples(rows);
    outline->stretches = calloc(outline->n + 1, sizeof(*outline->stretches));
    outline->known = outline->stretches != NULL && outline->n < STRETCHES_MAX;
    for (size_t i = 0; outline->known && i < outline->n; i++) {
        outline->stretches[i] =
            (struct tl_stretch){.lane = (unsigned)tl_postgres_number(rows, (int)i, 0),
                                .stretch = tl_postgres_number(rows, (int)i, 1),
                                .before = before};
        before += tl_postgres_number(rows, (int)i, 2);
    }
    if (outline->stretches != NULL)
        outline->stretches[outline->n].before = before;
}

/* Counts the outline of this generation, unless it is fresh. False: PostgreSQL is away. One that
 * takes too long to count is not known. */
static bool take_outline(struct tl_reading *reading, const struct generation *generation,
                         struct tl_outline *outline, struct tl_error *err)
{
    char id[TL_POSTGRES_TEXT], stretch[TL_POSTGRES_TEXT], most[TL_POSTGRES_TEXT];
    if ((outline->known && outline->event == generation->event) ||
        is_fresh(reading, outline->fetched_ms))
        return true;
    const char *const values[] = {tl_postgres_text((uint64_t)generation->id, id),
                                  tl_postgres_text(TL_STRETCH, stretch),
                                  tl_postgres_text(STRETCHES_MAX, most)};
    PGresult *rows = tl_postgres_run(&reading->postgres,
                                     "SELECT lane, seq / $2::bigint, count(*) FROM queue_entries "
                                     "WHERE generation_id = $1 AND status = 'waiting' "
                                     "GROUP BY 1, 2 ORDER BY 1, 2 LIMIT $3",
                                     3, values, err);
    free(outline->stretches);
    outline->stretches = NULL;
    outline->n = 0;
    outline->known = false;
    outline->event = generation->event;
    outline->as_of_ms = generation->as_of_ms;
    outline->fetched_ms = reading->now_ms;
    if (rows != NULL)
        take_stretches(outline, rows);
    PQclear(rows);
    return tl_postgres_connected(&reading->postgres);
}

/* How many wait before the stretch of this place. */
static uint64_t count_before(const struct tl_outline *outline, unsigned lane, uint64_t stretch)
{
    size_t low = 0, high = outline->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct tl_stretch *at = &outline->stretches[middle];
        if (at->lane < lane || (at->lane == lane && at->stretch < stretch))
            low = middle + 1;
        else
            high = middle;
    }
    return outline->stretches[low].before;
}

/* ---- the place ---- */

/* The reason of an end, by its status; 0: not known. */
static enum tl_reason reason_of(const char *status)
{
    static const char *const names[] = {
        [TL_REASON_COMPLETED] = "completed", [TL_REASON_LEFT] = "left",
        [TL_REASON_EXPIRED] = "expired",     [TL_REASON_UNCLAIMED] = "unclaimed",
        [TL_REASON_ABSENT] = "absent",       [TL_REASON_REMOVED] = "removed"};
    for (enum tl_reason reason = TL_REASON_COMPLETED; reason <= TL_REASON_REMOVED; reason++)
        if (strcmp(names[reason], status) == 0)
            return reason;
    return 0;
}

static enum tl_line_status status_of(const char *status)
{
    if (strcmp(status, "waiting") == 0)
        return TL_LINE_WAITING;
    return strcmp(status, "active") == 0 ? TL_LINE_ACTIVE : TL_LINE_ENDED;
}

/* What else is known of a waiting place. */
struct standing {
    bool drawn;      /* it has its seq by a draw */
    uint64_t before; /* who waits before it in its stretch */
};

/* The position of the job's place, if the rule of the line is as simple as that. */
static bool take_position(struct tl_reading *reading, const struct generation *generation,
                          const struct standing *standing, struct tl_archive_job *job,
                          struct tl_error *err)
{
    struct tl_archived_place *place = &job->place;
    struct tl_outline *outline = outline_of(reading, generation->id);
    if (!take_rules(reading, outline, err))
        return false;
    if (!outline->by_lanes || (outline->is_drawn && !standing->drawn))
        return true;
    if (!take_outline(reading, generation, outline, err))
        return false;
    if (!outline->known)
        return true;
    place->has_position = true;
    place->state.ahead =
        count_before(outline, place->lane, place->seq / TL_STRETCH) + standing->before;
    place->as_of_ms = outline->as_of_ms;
    return true;
}

/* Is what the last generation has under this seq the place of a ticket of that generation? Another
 * generation may have given the seq to another visitor, unless the place came back in it. */
static bool is_its_place(const struct generation *generation, const struct tl_archive_job *job,
                         bool restored)
{
    return generation->number == job->generation || restored;
}

bool tl_reading_place(struct tl_reading *reading, struct tl_archive_job *job, struct tl_error *err)
{
    struct tl_archived_place *place = &job->place;
    struct generation generation;
    char id[TL_POSTGRES_TEXT], seq[TL_POSTGRES_TEXT], stretch[TL_POSTGRES_TEXT];
    if (!find_generation(reading, job->queue, &generation, err))
        return false;
    job->found = TL_ARCHIVE_NONE;
    if (generation.id == 0)
        return true;
    const char *const values[] = {tl_postgres_text((uint64_t)generation.id, id),
                                  tl_postgres_text(job->seq, seq),
                                  tl_postgres_text(TL_STRETCH, stretch)};
    PGresult *rows = tl_postgres_run(
        &reading->postgres,
        "SELECT status, lane, serial, (extract(epoch FROM deadline) * 1000)::bigint, "
        "joined_seq IS NOT NULL, CASE WHEN status = 'waiting' THEN (SELECT count(*) FROM "
        "queue_entries AS o WHERE generation_id = $1 AND o.seq >= e.seq - e.seq % $3 AND "
        "o.seq < e.seq AND o.status = 'waiting' AND o.lane = e.lane) END, "
        "restored_at IS NOT NULL, seq FROM queue_entries AS e "
        "WHERE generation_id = $1 AND (seq = $2 OR joined_seq = $2) " TL_READING_LAST,
        3, values, err);
    if (rows == NULL)
        return false;
    bool ok = true;
    if (PQntuples(rows) > 0 && !PQgetisnull(rows, 0, 0) &&
        is_its_place(&generation, job, PQgetvalue(rows, 0, 6)[0] == 't')) {
        const char *status = PQgetvalue(rows, 0, 0);
        job->found = TL_ARCHIVE_FOUND;
        *place = (struct tl_archived_place){
            .state = {.status = status_of(status),
                      .reason = reason_of(status),
                      .deadline_ms = (int64_t)tl_postgres_number(rows, 0, 3)},
            .deleted = generation.deleted,
            .lane = (unsigned)tl_postgres_number(rows, 0, 1),
            .seq = tl_postgres_number(rows, 0, 7),
            .serial = (uint32_t)tl_postgres_number(rows, 0, 2),
            .as_of_ms = generation.as_of_ms,
        };
        const struct standing standing = {.drawn = PQgetvalue(rows, 0, 4)[0] == 't',
                                          .before = tl_postgres_number(rows, 0, 5)};
        if (place->state.status == TL_LINE_WAITING)
            ok = take_position(reading, &generation, &standing, job, err);
    }
    PQclear(rows);
    return ok;
}
