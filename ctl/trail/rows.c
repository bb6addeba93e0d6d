/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/archive/checkpoint.h"
#include "common/base/units.h"
#include "common/line/placemap.h"

#include "ctl/trail/rows.h"
#include "lab/memory.h"

#define AT_ONCE "20000"
enum { SHOWN = 20 };

/* A place, as its row should be. */
struct fact {
    uint64_t seq, event;
    unsigned lane;
    bool ended;
    char status[16];
    int64_t joined_ms, admitted_ms, ended_ms; /* 0: not known */
};

struct tl_trail_rows {
    struct fact *facts;
    size_t n, capacity;
    struct tl_placemap by_seq; /* seq -> index + 1 */
    uint64_t told_event;       /* of the last `begins` */
    uint64_t event;            /* of the last leaf */
};

struct tl_trail_rows *tl_trail_rows_new(void)
{
    return tl_xalloc(1, sizeof(struct tl_trail_rows));
}

void tl_trail_rows_free(struct tl_trail_rows *rows)
{
    if (rows == NULL)
        return;
    tl_placemap_clear(&rows->by_seq);
    free(rows->facts);
    free(rows);
}

/* ---- leaves ---- */

static void put(struct tl_trail_rows *rows, uint64_t seq, size_t index)
{
    if (!tl_placemap_put(&rows->by_seq, seq, index + 1))
        tl_no_memory();
}

static struct fact *fact_of(struct tl_trail_rows *rows, tl_place place)
{
    uint64_t index;
    if (tl_placemap_get(&rows->by_seq, tl_place_seq(place), &index))
        return &rows->facts[index - 1];
    rows->facts = tl_xgrow(rows->facts, &rows->capacity, rows->n + 1, sizeof(*rows->facts));
    put(rows, tl_place_seq(place), rows->n);
    rows->facts[rows->n] = (struct fact){.seq = tl_place_seq(place)};
    return &rows->facts[rows->n++];
}

static void end(struct fact *fact, const char *status, int64_t ms)
{
    fact->ended = true;
    fact->ended_ms = ms;
    snprintf(fact->status, sizeof(fact->status), "%.15s", status);
}

/* All who were not told again since the last gap, or all, have ended. */
static void end_all(struct tl_trail_rows *rows, const struct tl_leaf *leaf, const char *status,
                    uint64_t before)
{
    for (size_t i = 0; i < rows->n; i++)
        if (!rows->facts[i].ended && rows->facts[i].event < before)
            end(&rows->facts[i], status, leaf->ms);
}

static void take_place(struct tl_trail_rows *rows, const struct tl_leaf *leaf)
{
    char who[TL_LEAF_WHO_SIZE];
    tl_place to = tl_leaf_held(leaf, who);
    if (leaf->place == 0 || to == 0) /* which the replay complains about */
        return;
    struct fact *fact = fact_of(rows, leaf->place);
    fact->event = leaf->event;
    fact->lane = tl_place_lane(leaf->place);
    if (leaf->kind == TL_NOTE_ENDED) {
        end(fact, leaf->detail, leaf->ms);
    } else if (leaf->kind == TL_NOTE_LANE) {
        fact->lane = tl_place_lane(to);
    } else if (leaf->kind == TL_NOTE_DRAWN) {
        tl_placemap_remove(&rows->by_seq, fact->seq, NULL);
        fact->seq = tl_place_seq(to);
        put(rows, fact->seq, (size_t)(fact - rows->facts));
    } else {
        fact->ended = false;
    }
    if (leaf->kind == TL_NOTE_ENTERED && fact->joined_ms == 0)
        fact->joined_ms = leaf->ms;
    else if (leaf->kind == TL_NOTE_ADMITTED)
        fact->admitted_ms = leaf->ms;
    else if (leaf->kind == TL_NOTE_STAYS)
        fact->admitted_ms = 0;
}

void tl_trail_rows_take(struct tl_trail_rows *rows, const struct tl_leaf *leaf)
{
    rows->event = leaf->event;
    if (leaf->kind == TL_NOTE_BEGINS)
        rows->told_event = leaf->event;
    else if (leaf->kind == TL_NOTE_ALL)
        end_all(rows, leaf, "unknown", rows->told_event);
    else if (leaf->kind == TL_NOTE_DELETED)
        end_all(rows, leaf, "deleted", UINT64_MAX);
    else
        take_place(rows, leaf);
}

/* ---- rows ---- */

static int compare_facts(const void *a, const void *b)
{
    const struct fact *first = a, *second = b;
    return (first->seq > second->seq) - (first->seq < second->seq);
}

static bool is_time(int64_t expected, const char *ms)
{
    return expected == 0 || expected == strtoll(ms, NULL, 10);
}

/* The columns of ROWS. */
enum { SEQ, LANE, STATUS, JOINED, ADMITTED, ENDED, IS_LATER };
#define MS(column) "coalesce((extract(epoch FROM " column ") * 1000)::bigint, 0)"
#define ROWS                                                                                       \
    "SELECT seq, lane, status, " MS("joined_at") ", " MS("admitted_at") ", " MS(                   \
        "ended_at") ", q.event > $4 AND q.event <= g.event FROM queue_entries AS q JOIN "          \
                    "queue_generations AS g USING (generation_id) JOIN queues USING (queue_id) "   \
                    "WHERE name = $1 AND generation = $2 AND seq > $3 ORDER BY seq LIMIT " AT_ONCE

/* Of a place that has not ended as far as the trail goes, only that: Redis knows the rest. fact:
 * NULL: the trail has no such place. */
static bool is_right(const struct fact *fact, const PGresult *found, int i)
{
    int64_t ended_ms = strtoll(PQgetvalue(found, i, ENDED), NULL, 10);
    if (PQgetvalue(found, i, IS_LATER)[0] == 't')
        return true;
    if (fact == NULL || !fact->ended)
        return ended_ms == 0;
    return strtoul(PQgetvalue(found, i, LANE), NULL, 10) == fact->lane &&
           strcmp(PQgetvalue(found, i, STATUS), fact->status) == 0 &&
           is_time(fact->joined_ms, PQgetvalue(found, i, JOINED)) &&
           is_time(fact->admitted_ms, PQgetvalue(found, i, ADMITTED)) && ended_ms == fact->ended_ms;
}

struct comparison {
    const struct tl_trail_rows *rows;
    size_t next; /* of the facts */
    int64_t kept_since_ms;
    uint64_t n_wrong;
};

static void say(struct comparison *self, uint64_t seq, const struct fact *fact, const char *status,
                int64_t ended_ms)
{
    char trail[40] = "", row[40] = "";
    if (++self->n_wrong > SHOWN) {
        if (self->n_wrong == SHOWN + 1)
            puts("... and more");
        return;
    }
    if (fact != NULL && fact->ended)
        tl_time_format(fact->ended_ms, trail, sizeof(trail));
    if (ended_ms != 0)
        tl_time_format(ended_ms, row, sizeof(row));
    printf("number %" PRIu64 ": in the trail %s%s%s, in PostgreSQL %s%s%s\n", seq,
           fact == NULL  ? "not there"
           : fact->ended ? fact->status
                         : "not ended",
           trail[0] != '\0' ? " at " : "", trail, status != NULL ? status : "not there",
           row[0] != '\0' ? " at " : "", row);
}

/* The facts up to this seq have no row. */
static void pass(struct comparison *self, uint64_t seq)
{
    for (; self->next < self->rows->n && self->rows->facts[self->next].seq < seq; self->next++) {
        const struct fact *fact = &self->rows->facts[self->next];
        if (fact->ended && fact->ended_ms > self->kept_since_ms)
            say(self, fact->seq, fact, NULL, 0);
    }
}

static void compare_row(struct comparison *self, uint64_t seq, const PGresult *found, int i)
{
    const struct fact *fact = NULL;
    pass(self, seq);
    if (self->next < self->rows->n && self->rows->facts[self->next].seq == seq)
        fact = &self->rows->facts[self->next++];
    if (!is_right(fact, found, i))
        say(self, seq, fact, PQgetvalue(found, i, STATUS),
            strtoll(PQgetvalue(found, i, ENDED), NULL, 10));
}

bool tl_trail_rows_compare(struct tl_trail_rows *rows, struct tl_postgres *postgres,
                           const char *origin, int64_t kept_since_ms, uint64_t *n_wrong,
                           struct tl_error *err)
{
    struct comparison self = {.rows = rows, .kept_since_ms = kept_since_ms};
    char queue[TL_CHECKPOINT_MAX], seq[TL_POSTGRES_TEXT] = "0", event[TL_POSTGRES_TEXT];
    const char *slash = strchr(origin, '/');
    snprintf(queue, sizeof(queue), "%s", slash != NULL ? slash + 1 : "");
    char *generation = strrchr(queue, '/');
    if (generation == NULL)
        return tl_error_set(err, TL_ERR_INVALID, "the checkpoint names no queue: %s", origin);
    *generation++ = '\0';
    const char *const values[] = {queue, generation, seq, tl_postgres_text(rows->event, event)};
    if (rows->n > 0) /* else there is no list to sort */
        qsort(rows->facts, rows->n, sizeof(*rows->facts), compare_facts);
    for (int n = 1; n > 0;) {
        PGresult *some = tl_postgres_run(postgres, ROWS, 4, values, err);
        if (some == NULL)
            return false;
        n = PQntuples(some);
        for (int i = 0; i < n; i++)
            compare_row(&self, tl_postgres_number(some, i, SEQ), some, i);
        if (n > 0)
            snprintf(seq, sizeof(seq), "%s", PQgetvalue(some, n - 1, SEQ));
        PQclear(some);
    }
    pass(&self, UINT64_MAX);
    *n_wrong = self.n_wrong;
    return true;
}
