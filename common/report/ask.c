/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/archive/migrate.h"
#include "common/base/clock.h"
#include "common/base/text.h"
#include "common/control/settings_json.h"
#include "common/report/report.h"

#include "generated/report_sql.h"

enum { CONNECT_MS = 5000 }; /* and each of the first statements, which are short */

bool tl_report_open(struct tl_report_archive *archive, const char *url, int64_t limit_ms,
                    struct tl_error *err)
{
    struct tl_postgres *postgres = &archive->postgres;
    unsigned version = 0;
    *archive = (struct tl_report_archive){.postgres.limit_ms = CONNECT_MS,
                                          .until_ms = tl_clock_ms() + limit_ms};
    /* A sale is sorted in memory rather than on disk. */
    return tl_postgres_check(url, err) && tl_postgres_open(postgres, url, "tellerline", err) &&
           tl_postgres_do(postgres, "SET timezone = 'UTC'; SET work_mem = '64MB'", 0, NULL, err) &&
           tl_migrate_version(postgres, &version, err) &&
           (version > 0 || tl_error_set(err, TL_ERR_INVALID,
                                        "PostgreSQL has no tables of an archive: run "
                                        "`tellerline db migrate`"));
}

void tl_report_close(struct tl_report_archive *archive)
{
    tl_postgres_close(&archive->postgres);
}

/* ---- statements ---- */

/* tl_postgres_run in the time that is left, after which the server, too, ends the statement. */
static PGresult *run(struct tl_report_archive *archive, const char *sql, int n,
                     const char *const *values, struct tl_error *err)
{
    char limit[64];
    const int64_t left_ms = archive->until_ms - tl_clock_ms();
    if (left_ms <= 0) {
        tl_error_set(err, TL_ERR_STORE, "PostgreSQL: no answer in time");
        return NULL;
    }
    archive->postgres.limit_ms = left_ms;
    snprintf(limit, sizeof(limit), "SET statement_timeout = %" PRId64, left_ms);
    return tl_postgres_do(&archive->postgres, limit, 0, NULL, err)
               ? tl_postgres_run(&archive->postgres, sql, n, values, err)
               : NULL;
}

/* As text for PostgreSQL; NULL for what was not given. */
static const char *given(uint64_t value, char text[TL_POSTGRES_TEXT])
{
    return value != 0 ? tl_postgres_text(value, text) : NULL;
}

/* The JSON that a statement behind visits.sql makes; *made NULL: no row. */
static bool make(struct tl_report_archive *archive, const unsigned char *statement, size_t length,
                 const char *const values[4], json_t **made, struct tl_error *err)
{
    struct tl_text sql = {0};
    *made = NULL;
    tl_text_append(&sql, "%.*s\n%.*s", (int)sizeof(tl_web_visits_sql),
                   (const char *)tl_web_visits_sql, (int)length, (const char *)statement);
    PGresult *found = NULL;
    if (sql.failed)
        tl_error_set(err, TL_ERR_NOMEM, "no memory for a report");
    else
        found = run(archive, sql.data, 4, values, err);
    tl_text_free(&sql);
    if (found == NULL)
        return false;
    const bool any = PQntuples(found) > 0 && !PQgetisnull(found, 0, 0);
    if (any)
        *made = json_loads(PQgetvalue(found, 0, 0), 0, NULL);
    PQclear(found);
    return !any || *made != NULL ||
           tl_error_set(err, TL_ERR_NOMEM, "PostgreSQL answers no report, or there is no memory");
}

/* The generations that a wish is about, as an array of PostgreSQL, and their partitions are looked
 * at alone: all of each sale, or one who came back would count twice. NULL with err; no row: there
 * are none. */
static PGresult *find_generations(struct tl_report_archive *archive,
                                  const struct tl_report_wish *wish, struct tl_error *err)
{
    char sale[TL_POSTGRES_TEXT], since[TL_POSTGRES_TEXT];
    const char *const values[] = {wish->queue, given(wish->sale, sale),
                                  given((uint64_t)wish->since_ms, since)};
    return run(
        archive,
        "WITH of AS (SELECT * FROM queue_sales JOIN queues USING (queue_id) WHERE name = $1) "
        "SELECT array_agg(generation_id) FROM of WHERE CASE "
        "WHEN $2::bigint IS NOT NULL THEN sale = (SELECT sale FROM of WHERE generation = "
        "$2::bigint) "
        "WHEN $3::float8 IS NULL THEN sale = (SELECT max(sale) FROM of) "
        "ELSE sale IN (SELECT sale FROM of WHERE last_at IS NULL OR "
        "last_at >= to_timestamp($3::float8 / 1000)) END HAVING count(*) > 0",
        3, values, err);
}

/* Puts words that people read in the place of those that the record keeps. */
static void show(json_t *change, const char *name)
{
    const char *members = json_string_value(json_object_get(change, name));
    (void)json_object_set_new(change, name, tl_settings_record_to_json(members));
}

bool tl_report_ask(struct tl_report_archive *archive, const struct tl_report_wish *wish,
                   json_t **report, struct tl_error *err)
{
    char since[TL_POSTGRES_TEXT], until[TL_POSTGRES_TEXT];
    json_t *change;
    size_t i;
    *report = NULL;
    PGresult *generations = find_generations(archive, wish, err);
    if (generations == NULL)
        return false;
    bool ok = true;
    if (PQntuples(generations) > 0) {
        const char *const values[] = {wish->queue, PQgetvalue(generations, 0, 0),
                                      given((uint64_t)wish->since_ms, since),
                                      given((uint64_t)wish->until_ms, until)};
        ok = make(archive, tl_web_report_sql, sizeof(tl_web_report_sql), values, report, err);
    }
    PQclear(generations);
    json_array_foreach(json_object_get(*report, "changes"), i, change)
    {
        show(change, "before");
        show(change, "after");
    }
    return ok;
}

bool tl_report_sales(struct tl_report_archive *archive, const char *queue, int64_t limit_ms,
                     json_t **sales, struct tl_error *err)
{
    const int64_t until_ms = tl_clock_ms() + limit_ms;
    const char *const values[] = {queue};
    json_t *list = json_array(), *sale;
    *sales = NULL;
    PGresult *found =
        run(archive,
            "SELECT array_agg(generation_id) FROM queue_sales JOIN queues USING (queue_id) "
            "WHERE name = $1 GROUP BY sale ORDER BY sale DESC",
            1, values, err);
    bool ok = found != NULL && list != NULL;
    int i = 0;
    for (; ok && i < PQntuples(found) && json_array_size(list) < TL_REPORT_SALES &&
           tl_clock_ms() < until_ms;
         i++) {
        const char *const of[] = {queue, PQgetvalue(found, i, 0), NULL, NULL};
        ok = make(archive, tl_web_sale_sql, sizeof(tl_web_sale_sql), of, &sale, err) &&
             (sale == NULL || json_array_append_new(list, sale) == 0);
    }
    if (ok)
        *sales = json_pack("{s:s, s:O, s:b}", "queue", queue, "sales", list, "has_more",
                           i < PQntuples(found));
    json_decref(list);
    PQclear(found);
    return *sales != NULL ||
           (err->kind == TL_OK && tl_error_set(err, TL_ERR_NOMEM, "no memory for a list of sales"));
}
