#include <stdio.h>
#include <stdlib.h>

#include <jansson.h>

#include "common/config/queue_settings.h"

#include "ctl/command.h"
#include "ctl/json.h"
#include "ctl/rows.h"
#include "ctl/table.h"

static const struct tl_column columns[] = {
    {"QUEUE", false},    {"MODE", false},   {"PHASE", false}, {"WAITING", true},
    {"ACTIVE", true},    {"LIMIT", true},   {"JOINED", true}, {"ADMITTED", true},
    {"COMPLETED", true}, {"EXPIRED", true}, {"LEFT", true},
};

static bool write_table(const struct tl_queue_rows *rows)
{
    if (rows->n == 0) {
        printf("no queues yet; add some under `queues` in the configuration file\n");
        return true;
    }
    struct tl_text out = {0};
    struct tl_table *table = tl_table_new(columns, sizeof(columns) / sizeof(columns[0]));
    if (table == NULL)
        return false;
    for (size_t i = 0; i < rows->n; i++) {
        char text[128];
        const struct tl_queue_row *row = &rows->rows[i];
        const struct tl_queue_numbers *numbers = &row->numbers;
        tl_table_text(table, row->name);
        tl_table_text(table, tl_mode_name(row->settings.mode));
        tl_queue_row_phase(row, rows->now_ms, text, sizeof(text));
        tl_table_text(table, text);
        tl_table_number(table, numbers->waiting);
        tl_table_number(table, numbers->active);
        tl_queue_row_limit(row, text, sizeof(text));
        tl_table_text(table, text);
        tl_table_number(table, numbers->joined);
        tl_table_number(table, numbers->admitted);
        tl_table_number(table, numbers->completed);
        tl_table_number(table, numbers->expired);
        tl_table_number(table, numbers->left);
    }
    tl_table_write(table, &out);
    bool ok = !out.failed;
    if (ok)
        fputs(out.data, stdout);
    for (size_t i = 0; ok && i < rows->n; i++) {
        if (rows->rows[i].trouble[0] != '\0')
            printf("%s: %s\n", rows->rows[i].name, rows->rows[i].trouble);
    }
    tl_text_free(&out);
    tl_table_free(&table);
    return ok;
}

static bool write_json(const struct tl_queue_rows *rows)
{
    json_t *list = json_array();
    bool ok = list != NULL;
    for (size_t i = 0; ok && i < rows->n; i++) {
        char state[64];
        const struct tl_queue_row *row = &rows->rows[i];
        const struct tl_queue_numbers *numbers = &row->numbers;
        const struct tl_queue_settings *settings = &row->settings;
        bool has_capacity = settings->policy != TL_POLICY_RATE;
        bool has_rate = settings->policy != TL_POLICY_COUNTER;
        tl_queue_row_state(row, rows->now_ms, state, sizeof(state));
        json_t *object = json_pack(
            "{s:s, s:s, s:s, s:s, s:s*, s:I, s:I, s:o*, s:o*, s:o*, s:I, s:I, s:I, s:I, s:I, s:I, "
            "s:I, s:I}",
            "queue", row->name, "state", state, "mode", tl_mode_name(settings->mode), "phase",
            tl_phase_name(tl_queue_row_phase_of(row, rows->now_ms)), "trouble",
            row->trouble[0] != '\0' ? row->trouble : NULL, "waiting", (json_int_t)numbers->waiting,
            "active", (json_int_t)numbers->active, "capacity",
            has_capacity ? json_integer((json_int_t)tl_queue_capacity(settings)) : NULL, "feedback",
            settings->capacity_mode == TL_CAPACITY_AUTO ? json_boolean(!settings->now.stale) : NULL,
            "rate",
            has_rate ? json_pack("{s:I, s:I}", "admit", (json_int_t)settings->rate_admit,
                                 "every_ms", (json_int_t)settings->rate_every_ms)
                     : NULL,
            "joined", (json_int_t)numbers->joined, "admitted", (json_int_t)numbers->admitted,
            "completed", (json_int_t)numbers->completed, "expired", (json_int_t)numbers->expired,
            "unclaimed", (json_int_t)numbers->unclaimed, "absent", (json_int_t)numbers->absent,
            "removed", (json_int_t)numbers->removed, "left", (json_int_t)numbers->left);
        ok = json_array_append_new(list, object) == 0;
    }
    if (!ok) {
        json_decref(list);
        return false;
    }
    return tl_json_write(json_pack("{s:o}", "queues", list));
}

int tl_command_queues(const struct tl_ctl_options *options)
{
    struct tl_error err = {0};
    struct tl_ctl_session session;
    if (!tl_ctl_session_open(&session, options, &err))
        return tl_ctl_fail(TL_EXIT_FAILED, &err);
    struct tl_queue_rows rows;
    bool ok = tl_queue_rows_read(&session, &rows, &err);
    if (ok) {
        ok = options->json ? write_json(&rows) : write_table(&rows);
        if (!ok)
            tl_error_set(&err, TL_ERR_NOMEM, "no memory to show %zu queues", rows.n);
        tl_queue_rows_free(&rows);
    }
    tl_ctl_session_close(&session);
    return ok ? TL_EXIT_OK : tl_ctl_fail(TL_EXIT_FAILED, &err);
}
