/* SPDX-License-Identifier: Apache-2.0 */
/* `queue show`, `create`, `delete` and `line`. */
#include <inttypes.h>
#include <stdio.h>

#include "common/base/units.h"

#include "ctl/calls/assignments.h"
#include "ctl/calls/call.h"
#include "ctl/calls/rows.h"
#include "ctl/calls/tell.h"
#include "ctl/shell/confirm.h"
#include "ctl/shell/json.h"
#include "ctl/shell/table.h"
#include "ctl/shell/terminal.h"

enum { VALUE_MAX = 1200 };

/* ---- show ---- */

static void add_setting(void *context, const char *name, const json_t *value)
{
    char text[VALUE_MAX], local[VALUE_MAX];
    tl_json_show(value, text, sizeof(text));
    tl_terminal_time_of(text, local, sizeof(local));
    tl_table_text(context, name);
    tl_table_text(context, local);
}

static bool write_settings(const json_t *queue)
{
    static const struct tl_column columns[] = {{"SETTING", false}, {"VALUE", false}};
    char created[TL_UNITS_TEXT_MAX];
    struct tl_table *table = tl_table_new(columns, sizeof(columns) / sizeof(columns[0]));
    if (table == NULL)
        return false;
    tl_terminal_time_of(tl_json_text(queue, "created_at"), created, sizeof(created));
    printf("%s, created %s\n\n", tl_json_text(queue, "name"), created);
    tl_json_flat(json_object_get(queue, "settings"), add_setting, table);
    bool ok = tl_table_print(table);
    tl_table_free(&table);
    return ok;
}

int tl_command_queue_show(const struct tl_ctl_options *options)
{
    char target[TL_CTL_TARGET_MAX];
    if (!tl_ctl_target(target, "queues", options->words[0], NULL))
        return TL_EXIT_PROBLEM;
    return tl_ctl_show(options, target, write_settings);
}

/* ---- create ---- */

int tl_command_queue_create(const struct tl_ctl_options *options)
{
    struct tl_error err = {0};
    const char *queue = options->words[0];
    json_t *answer;
    json_t *settings = tl_assignments_read(options->n_words - 1, options->words + 1, &err);
    if (settings == NULL)
        return tl_ctl_fail(tl_ctl_status_of(&err), &err);
    json_t *body = json_pack("{s:s, s:o}", "name", queue, "settings", settings);
    const struct tl_ctl_ask ask = {
        .method = "POST", .target = "/v1/admin/queues", .body = body, .sends = true};
    int status = tl_ctl_call_once(options, &ask, &answer);
    json_decref(body);
    return status == TL_EXIT_OK
               ? tl_ctl_tell(options, answer, "%s: created; the waiting page is at /q/%s", queue,
                             queue)
               : status;
}

/* ---- delete ---- */

/* Asks, with how many people it concerns. */
static int confirm(const struct tl_ctl_options *options, struct tl_ctl_call *call)
{
    char target[TL_CTL_TARGET_MAX], what[256];
    json_t *stats;
    const char *queue = options->words[0];
    if (options->yes)
        return TL_EXIT_OK;
    if (!tl_ctl_target(target, "queues", queue, "stats", NULL))
        return TL_EXIT_PROBLEM;
    const struct tl_ctl_ask ask = {.method = "GET", .target = target};
    int status = tl_ctl_call_body(call, &ask, &stats);
    if (status != TL_EXIT_OK)
        return status;
    snprintf(what, sizeof(what),
             "Queue %s will be deleted: %" PRIu64 " who wait lose their places, %" PRIu64
             " who are active lose their sessions. This cannot be undone.",
             queue, tl_row_number(stats, "waiting"), tl_row_number(stats, "active"));
    json_decref(stats);
    return tl_ctl_confirm(options, what, queue);
}

int tl_command_queue_delete(const struct tl_ctl_options *options)
{
    struct tl_error err = {0};
    char target[TL_CTL_TARGET_MAX];
    const char *queue = options->words[0];
    json_t *answer = NULL;
    if (!tl_ctl_target(target, "queues", queue, NULL))
        return TL_EXIT_PROBLEM;
    struct tl_ctl_call *call = tl_ctl_call_open(options, &err);
    if (call == NULL)
        return tl_ctl_fail(TL_EXIT_FAILED, &err);
    json_t *body = json_pack("{s:s}", "name", queue);
    const struct tl_ctl_ask ask = {
        .method = "DELETE", .target = target, .body = body, .sends = true};
    int status = confirm(options, call);
    if (status == TL_EXIT_OK)
        status = tl_ctl_call_body(call, &ask, &answer);
    json_decref(body);
    tl_ctl_call_close(&call);
    return status == TL_EXIT_OK ? tl_ctl_tell(options, answer, "%s: deleted", queue) : status;
}

/* ---- line ---- */

static bool write_line(const json_t *answer)
{
    static const struct tl_column columns[] = {
        {"POSITION", true}, {"LANE", false}, {"JOINED", false}, {"VISITOR", false}};
    size_t i;
    json_t *visitor;
    struct tl_table *table = tl_table_new(columns, sizeof(columns) / sizeof(columns[0]));
    if (table == NULL)
        return false;
    json_array_foreach(json_object_get(answer, "visitors"), i, visitor)
    {
        tl_table_number(table, tl_row_number(visitor, "position"));
        char joined[TL_UNITS_TEXT_MAX];
        const char *joined_at = tl_json_text(visitor, "joined_at");
        tl_terminal_time_of(joined_at, joined, sizeof(joined));
        tl_table_text(table, tl_json_text(visitor, "lane"));
        tl_table_text(table, *joined_at != '\0' ? joined : "-");
        tl_table_text(table, tl_json_text(visitor, "visitor"));
    }
    bool ok = tl_table_print(table);
    json_int_t next = tl_json_number(answer, "next");
    if (ok && next > 0)
        printf("%lld wait in all; --from %lld goes on\n",
               (long long)tl_json_number(answer, "waiting"), (long long)next);
    tl_table_free(&table);
    return ok;
}

int tl_command_queue_line(const struct tl_ctl_options *options)
{
    char target[TL_CTL_TARGET_MAX], from[24], limit[24];
    snprintf(from, sizeof(from), "%" PRIu64, options->from);
    snprintf(limit, sizeof(limit), "%" PRIu64, options->limit);
    if (!tl_ctl_target(target, "queues", options->words[0], "line", NULL) ||
        !tl_ctl_target_add(target, "from", options->from > 0 ? from : NULL) ||
        !tl_ctl_target_add(target, "limit", options->limit > 0 ? limit : NULL))
        return TL_EXIT_PROBLEM;
    return tl_ctl_show(options, target, write_line);
}
