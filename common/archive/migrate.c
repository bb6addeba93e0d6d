/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "common/archive/migrate.h"
#include "common/base/text.h"

#include "generated/archive_schema.h"

#define ROW(name, id, type, hash) {(const char *)tl_web_##id, sizeof(tl_web_##id)},
static const struct {
    const char *sql;
    size_t length;
} versions[] = {TL_WEB_FILES(ROW)};
#undef ROW

#define LOCK "SELECT pg_advisory_xact_lock(hashtext('tellerline schema'))"

unsigned tl_migrate_wanted(void)
{
    return sizeof(versions) / sizeof(versions[0]);
}

bool tl_migrate_version(struct tl_postgres *postgres, unsigned *version, struct tl_error *err)
{
    *version = 0;
    PGresult *table = tl_postgres_run(
        postgres, "SELECT to_regclass('tellerline.schema_version') IS NOT NULL", 0, NULL, err);
    bool exists = table != NULL && PQgetvalue(table, 0, 0)[0] == 't';
    PQclear(table);
    if (table == NULL || !exists)
        return table != NULL;
    PGresult *found = tl_postgres_run(
        postgres, "SELECT coalesce(max(version), 0) FROM tellerline.schema_version", 0, NULL, err);
    if (found != NULL)
        *version = (unsigned)strtoul(PQgetvalue(found, 0, 0), NULL, 10);
    PQclear(found);
    return found != NULL;
}

/* The file of this version, and that it was run. */
static bool run_version(struct tl_postgres *postgres, unsigned version, struct tl_error *err)
{
    struct tl_text sql = {0};
    tl_text_append(&sql, "%.*s; INSERT INTO schema_version VALUES (%u, now())",
                   (int)versions[version - 1].length, versions[version - 1].sql, version);
    bool ok = !sql.failed || tl_error_set(err, TL_ERR_NOMEM, "no memory for the tables");
    ok = ok && tl_postgres_do(postgres, sql.data, 0, NULL, err);
    tl_text_free(&sql);
    return ok;
}

static bool bring_up(struct tl_postgres *postgres, unsigned *before, struct tl_error *err)
{
    if (!tl_postgres_do(postgres, LOCK, 0, NULL, err) || !tl_migrate_version(postgres, before, err))
        return false;
    if (*before > tl_migrate_wanted())
        return tl_error_set(
            err, TL_ERR_INVALID,
            "the tables have version %u, and this program knows only %u: upgrade it", *before,
            tl_migrate_wanted());
    bool ok = *before > 0 ||
              tl_postgres_do(postgres,
                             "CREATE SCHEMA IF NOT EXISTS tellerline; CREATE TABLE schema_version "
                             "(version int PRIMARY KEY, at timestamptz NOT NULL)",
                             0, NULL, err);
    for (unsigned version = *before + 1; ok && version <= tl_migrate_wanted(); version++)
        ok = run_version(postgres, version, err);
    return ok;
}

bool tl_migrate(struct tl_postgres *postgres, unsigned *before, struct tl_error *err)
{
    bool ok = tl_postgres_do(postgres, "BEGIN", 0, NULL, err) && bring_up(postgres, before, err) &&
              tl_postgres_do(postgres, "COMMIT", 0, NULL, err);
    if (!ok && tl_postgres_connected(postgres))
        (void)tl_postgres_do(postgres, "ROLLBACK", 0, NULL, NULL);
    return ok;
}
