/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table. Joining is a row, a position is a COUNT, being admitted is an UPDATE of the status.
 *
 * As a fair programmer would build it: prepared statements, rows inserted 1,000 at a time by one
 * statement, pipelined; partial indexes for exactly the questions asked; the position counted in an
 * index alone (the table is vacuumed before, which autovacuum does sooner or later); admission and
 * expiry by one statement each. Durability is PostgreSQL's default: fsync, synchronous commit.
 */
#include <inttypes.h>
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "way.h"

#define INSERTS_UNDER_WAY                                                                          \
    4 /* what both sockets' buffers hold, so that neither side waits for the other */

struct relational {
    PGconn *connection;
    size_t under_way;
};

static void check(struct relational *self, PGresult *result, ExecStatusType wanted)
{
    if (PQresultStatus(result) != wanted)
        way_die("PostgreSQL: %s", PQerrorMessage(self->connection));
}

static void run(struct relational *self, const char *sql)
{
    PGresult *result = PQexec(self->connection, sql);
    if (PQresultStatus(result) != PGRES_TUPLES_OK)
        check(self, result, PGRES_COMMAND_OK);
    PQclear(result);
}

static void *open_connection(void)
{
    const char *where = getenv("BENCH_POSTGRES");
    struct relational *self = calloc(1, sizeof(*self));
    if (where == NULL || self == NULL)
        way_die("BENCH_POSTGRES (where PostgreSQL is) is not set");
    self->connection = PQconnectdb(where);
    if (PQstatus(self->connection) != CONNECTION_OK)
        way_die("PostgreSQL: %s", PQerrorMessage(self->connection));
    run(self, "SET client_min_messages = warning");
    return self;
}

static void close_connection(void *actor)
{
    struct relational *self = actor;
    PQfinish(self->connection);
    free(self);
}

static void setup(void *actor)
{
    run(actor, "DROP TABLE IF EXISTS token;"
               "CREATE TABLE token ("
               "  id bigserial PRIMARY KEY,"
               "  visitor text NOT NULL UNIQUE,"
               "  status text NOT NULL DEFAULT 'WAITING',"
               "  created_at timestamptz NOT NULL DEFAULT now(),"
               "  expires_at timestamptz);"
               "CREATE INDEX token_waiting ON token (id) WHERE status = 'WAITING';"
               "CREATE INDEX token_active ON token (expires_at) WHERE status = 'ACTIVE'");
}

static void prepare(struct relational *self, const char *name, const char *sql)
{
    PGresult *result = PQprepare(self->connection, name, sql, 0, NULL);
    if (PQresultStatus(result) != PGRES_COMMAND_OK)
        way_die("PostgreSQL: %s", PQerrorMessage(self->connection));
    PQclear(result);
}

/* Reads the results of one transaction of the pipeline; the numbers of its rows go to answers. */
static void settle_one(struct relational *self, uint64_t *answers, size_t n)
{
    size_t got = 0;
    for (;;) {
        PGresult *result = PQgetResult(self->connection);
        if (result == NULL)
            continue; /* the end of one statement's results */
        ExecStatusType status = PQresultStatus(result);
        if (status == PGRES_TUPLES_OK && answers != NULL && got < n)
            answers[got++] = strtoull(PQgetvalue(result, 0, 0), NULL, 10) + 1;
        else if (status != PGRES_PIPELINE_SYNC)
            check(self, result, PGRES_TUPLES_OK);
        PQclear(result);
        if (status == PGRES_PIPELINE_SYNC)
            break;
    }
    self->under_way--;
}

/* The ids of a batch as the text of a PostgreSQL array. */
static void visitors_array(uint64_t first, uint64_t n, char *text)
{
    *text++ = '{';
    for (uint64_t i = 0; i < n; i++) {
        if (i > 0)
            *text++ = ',';
        way_visitor(first + i, text);
        text += WAY_ID_LENGTH;
    }
    memcpy(text, "}", 2);
}

static void join(void *actor, uint64_t first, uint64_t n)
{
    struct relational *self = actor;
    static char array[WAY_BATCH * (WAY_ID_LENGTH + 1) + 3];
    const char *values[1] = {array};
    if (first == 1)
        prepare(self, "join",
                "INSERT INTO token (visitor) SELECT unnest($1::text[]) "
                "ON CONFLICT (visitor) DO NOTHING RETURNING id");
    PQenterPipelineMode(self->connection);
    for (uint64_t done = 0; done < n; done += WAY_BATCH) {
        visitors_array(first + done, n - done < WAY_BATCH ? n - done : WAY_BATCH, array);
        if (PQsendQueryPrepared(self->connection, "join", 1, values, NULL, NULL, 0) != 1 ||
            PQpipelineSync(self->connection) != 1)
            way_die("PostgreSQL: %s", PQerrorMessage(self->connection));
        if (++self->under_way >= INSERTS_UNDER_WAY)
            settle_one(self, NULL, 0);
    }
    while (self->under_way > 0)
        settle_one(self, NULL, 0);
    PQexitPipelineMode(self->connection);
}

static void settle(void *actor, uint64_t n)
{
    (void)n;
    run(actor, "VACUUM (ANALYZE) token");
    prepare(actor, "position", "SELECT count(*) FROM token WHERE id < $1 AND status = 'WAITING'");
}

/* The ticket holds the row's id, which is the visitor's number here: rows went in in this order. */
static void positions(void *actor, const uint64_t *visitors, size_t n, uint64_t *answers)
{
    struct relational *self = actor;
    PQenterPipelineMode(self->connection);
    for (size_t i = 0; i < n; i++) {
        char id[24];
        const char *values[1] = {id};
        snprintf(id, sizeof(id), "%" PRIu64, visitors[i]);
        if (PQsendQueryPrepared(self->connection, "position", 1, values, NULL, NULL, 0) != 1)
            way_die("PostgreSQL: %s", PQerrorMessage(self->connection));
    }
    PQpipelineSync(self->connection);
    self->under_way++;
    settle_one(self, answers, n);
    PQexitPipelineMode(self->connection);
}

static uint64_t change(struct relational *self, const char *sql)
{
    PGresult *result = PQexec(self->connection, sql);
    check(self, result, PGRES_COMMAND_OK);
    uint64_t rows = strtoull(PQcmdTuples(result), NULL, 10);
    PQclear(result);
    return rows;
}

static int64_t counted(void *actor)
{
    struct relational *self = actor;
    PGresult *result =
        PQexec(self->connection, "SELECT count(*) FROM token WHERE status = 'ACTIVE'");
    check(self, result, PGRES_TUPLES_OK);
    int64_t n = strtoll(PQgetvalue(result, 0, 0), NULL, 10);
    PQclear(result);
    return n;
}

static uint64_t admit(void *actor)
{
    char sql[512];
    int64_t room = WAY_CAPACITY - counted(actor);
    if (room <= 0)
        return 0;
    snprintf(sql, sizeof(sql),
             "UPDATE token SET status = 'ACTIVE', expires_at = now() + interval '%d milliseconds' "
             "WHERE id IN (SELECT id FROM token WHERE status = 'WAITING' ORDER BY id LIMIT %" PRId64
             " FOR UPDATE SKIP LOCKED)",
             WAY_TTL_MS, room);
    return change(actor, sql);
}

static uint64_t expire(void *actor, uint64_t most)
{
    char sql[512];
    snprintf(sql, sizeof(sql),
             "UPDATE token SET status = 'EXPIRED' WHERE id IN (SELECT id FROM token WHERE status = "
             "'ACTIVE' AND expires_at <= now() LIMIT %" PRIu64 ")",
             most < INT64_MAX ? most : INT64_MAX);
    return change(actor, sql);
}

static void restart(void *actor)
{
    struct relational *self = actor;
    PQfinish(self->connection);
    way_sleep_ms(200);
    struct relational *fresh = open_connection();
    *self = *fresh;
    free(fresh);
}

static double bytes(void *actor)
{
    struct relational *self = actor;
    PGresult *result = PQexec(self->connection, "SELECT pg_total_relation_size('token')");
    check(self, result, PGRES_TUPLES_OK);
    double n = strtod(PQgetvalue(result, 0, 0), NULL);
    PQclear(result);
    return n;
}

const struct way way_relational = {
    .name = "PostgreSQL table",
    .what = "A row per visitor; position by COUNT(*) of the rows waiting with a smaller id, on a "
            "partial index; admission and expiry by one UPDATE of the status each.",
    .source = "The usual first version; a queue kept in a database with Redis beside it: ddcn4-1, "
              "https://ddcn4-1.github.io/mgmt/07-backend/queue-structure.html",
    .postgres = true,
    .open = open_connection,
    .close = close_connection,
    .setup = setup,
    .join = join,
    .settle = settle,
    .positions = positions,
    .admit = admit,
    .expire = expire,
    .restart = restart,
    .counted = counted,
    .bytes = bytes,
};
