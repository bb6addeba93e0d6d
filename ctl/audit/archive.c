/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"

#include "ctl/audit/audit.h"

enum {
    LOOK_MS = 300,
    BEGIN_LIMIT_MS = 30000, /* an archiver looks every two seconds, and takes over within two */
};

#define LAST                                                                                       \
    "(SELECT generation_id FROM queue_generations JOIN queues USING (queue_id) WHERE name = $1 "   \
    "ORDER BY generation DESC LIMIT 1)"

/* asked: when that was; "": the archive does not know the queue. */
static bool ask(struct tl_postgres *postgres, const char *queue, char asked[40],
                struct tl_error *err)
{
    PGresult *found = tl_postgres_run(
        postgres,
        "INSERT INTO queue_rounds AS r (generation_id, asked_at) SELECT generation_id, "
        "clock_timestamp() FROM " LAST " AS g ON CONFLICT (generation_id) DO UPDATE SET asked_at = "
        "excluded.asked_at RETURNING asked_at",
        1, &queue, err);
    snprintf(asked, 40, "%s", PQntuples(found) > 0 ? PQgetvalue(found, 0, 0) : "");
    PQclear(found);
    return found != NULL;
}

/* Waits for the round. */
static bool follow(struct tl_postgres *postgres, const char *queue, const char *asked,
                   struct tl_error *err)
{
    const char *const values[] = {queue, asked};
    const int64_t began_ms = tl_clock_ms();
    for (;;) {
        PGresult *found = tl_postgres_run(
            postgres,
            "SELECT began_at >= $2::timestamptz, done_at >= $2::timestamptz FROM queue_rounds "
            "WHERE generation_id = " LAST,
            2, values, err);
        if (found == NULL)
            return false;
        const bool is_there = PQntuples(found) > 0;
        const bool has_begun = is_there && PQgetvalue(found, 0, 0)[0] == 't';
        const bool is_done = !is_there || PQgetvalue(found, 0, 1)[0] == 't'; /* deleted meanwhile */
        PQclear(found);
        if (is_done)
            return true;
        if (!has_begun && tl_clock_ms() > began_ms + BEGIN_LIMIT_MS)
            return tl_error_set(err, TL_ERR_STORE,
                                "no archiver compares the queue with the archive: does one run, "
                                "and is it ready?");
        tl_ctl_pause(LOOK_MS);
    }
}

bool tl_audit_archive(struct tl_postgres *postgres, const char *queue, bool at_once,
                      struct tl_audit_report *report, struct tl_error *err)
{
    char asked[40] = "";
    if (at_once && (!ask(postgres, queue, asked, err) ||
                    (asked[0] != '\0' && !follow(postgres, queue, asked, err))))
        return false;
    PGresult *found = tl_postgres_run(
        postgres,
        "SELECT difference_text(d), source = 'told' FROM queue_differences AS d WHERE "
        "generation_id = " LAST " ORDER BY seq",
        1, &queue, err);
    for (int i = 0; i < PQntuples(found); i++)
        tl_audit_add(report, 14, PQgetvalue(found, i, 0),
                     PQgetvalue(found, i, 1)[0] == 't'
                         ? "Redis was changed by hand, and then told the archive: find out who did "
                           "so, and delete the row in queue_differences"
                         : "one of them was changed by hand: find out who did so, and correct it");
    PQclear(found);
    return found != NULL;
}
