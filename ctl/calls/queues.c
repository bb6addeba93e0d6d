/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "common/base/units.h"

#include "ctl/calls/call.h"
#include "ctl/calls/rows.h"
#include "ctl/shell/json.h"
#include "ctl/shell/table.h"

static const struct tl_column columns[] = {
    {"QUEUE", false},    {"MODE", false},   {"PHASE", false}, {"WAITING", true},
    {"ACTIVE", true},    {"LIMIT", true},   {"JOINED", true}, {"ADMITTED", true},
    {"COMPLETED", true}, {"EXPIRED", true}, {"LEFT", true},
};

static void add_row(struct tl_table *table, const json_t *stats)
{
    static const char *const totals[] = {"joined", "admitted", "completed", "expired", "left"};
    char text[128];
    tl_table_text(table, tl_row_name(stats));
    tl_table_text(table, tl_json_text(stats, "mode"));
    tl_row_phase(stats, text, sizeof(text));
    tl_row_add_state(table, stats, text);
    tl_table_number(table, tl_row_number(stats, "waiting"));
    tl_table_number(table, tl_row_number(stats, "active"));
    tl_row_limit(stats, text, sizeof(text));
    tl_table_text(table, text);
    for (size_t i = 0; i < sizeof(totals) / sizeof(totals[0]); i++)
        tl_table_number(table, tl_row_total(stats, totals[i]));
}

static bool write_table(const json_t *list)
{
    size_t i;
    json_t *stats;
    if (json_array_size(list) == 0) {
        printf("no queues yet; `tellerline queue create` makes one, or add some under `queues` in "
               "the configuration file\n");
        return true;
    }
    struct tl_table *table = tl_table_new(columns, sizeof(columns) / sizeof(columns[0]));
    if (table == NULL)
        return false;
    json_array_foreach(list, i, stats)
    {
        add_row(table, stats);
    }
    bool ok = tl_table_print(table);
    json_array_foreach(list, i, stats)
    {
        if (ok && *tl_row_trouble(stats) != '\0')
            printf("%s: %s\n", tl_row_name(stats), tl_row_trouble(stats));
    }
    tl_table_free(&table);
    return ok;
}

/* Only what is no null. */
static json_t *present(const json_t *stats, const char *name)
{
    json_t *value = json_object_get(stats, name);
    return json_is_null(value) ? NULL : json_incref(value);
}

/* The rate that limits admission; NULL: there is none. */
static json_t *rate_of(const json_t *stats)
{
    const json_t *rate = json_object_get(stats, "rate");
    int64_t every_ms = 0;
    if (!json_is_object(rate) || !tl_duration_parse(tl_json_text(rate, "every"), &every_ms, NULL))
        return NULL;
    return json_pack("{s:I, s:I}", "admit", tl_json_number(rate, "admit"), "every_ms",
                     (json_int_t)every_ms);
}

static json_t *short_of(const json_t *stats)
{
    static const char *const totals[] = {"joined",    "admitted", "completed", "expired",
                                         "unclaimed", "absent",   "removed",   "left"};
    const char *trouble = tl_row_trouble(stats);
    json_t *object = json_pack(
        "{s:s, s:s, s:s, s:s, s:s*, s:I, s:I, s:o*, s:o*, s:o*}", "queue", tl_row_name(stats),
        "state", tl_row_state(stats), "mode", tl_json_text(stats, "mode"), "phase",
        tl_json_text(stats, "phase"), "trouble", *trouble != '\0' ? trouble : NULL, "waiting",
        tl_json_number(stats, "waiting"), "active", tl_json_number(stats, "active"), "capacity",
        present(stats, "capacity_now"), "feedback", present(stats, "feedback"), "rate",
        rate_of(stats));
    for (size_t i = 0; object != NULL && i < sizeof(totals) / sizeof(totals[0]); i++) {
        if (json_object_set_new(object, totals[i],
                                json_integer((json_int_t)tl_row_total(stats, totals[i]))) == 0)
            continue;
        json_decref(object);
        object = NULL;
    }
    return object;
}

static bool write_json(const json_t *list)
{
    size_t i;
    json_t *stats;
    json_t *rows = json_array();
    json_array_foreach(list, i, stats)
    {
        if (rows == NULL || json_array_append_new(rows, short_of(stats)) == 0)
            continue;
        json_decref(rows);
        rows = NULL;
    }
    return rows != NULL && tl_json_write(json_pack("{s:o}", "queues", rows));
}

int tl_command_queues(const struct tl_ctl_options *options)
{
    const struct tl_ctl_ask ask = {.method = "GET", .target = "/v1/admin/queues"};
    struct tl_error err = {0};
    json_t *body;
    int status = tl_ctl_call_once(options, &ask, &body);
    if (status != TL_EXIT_OK)
        return status;
    const json_t *list = json_object_get(body, "queues");
    bool ok = options->json ? write_json(list) : write_table(list);
    if (!ok)
        tl_error_set(&err, TL_ERR_NOMEM, "no memory to show the queues");
    json_decref(body);
    return ok ? TL_EXIT_OK : tl_ctl_fail(TL_EXIT_FAILED, &err);
}
