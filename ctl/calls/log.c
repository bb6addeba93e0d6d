/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/units.h"
#include "common/control/changes.h"

#include "ctl/calls/call.h"
#include "ctl/calls/change_text.h"
#include "ctl/shell/json.h"
#include "ctl/shell/table.h"
#include "ctl/shell/terminal.h"

enum { LIMIT = 50 };

/* ---- reading: the changes as JSON, newest first ---- */

/* The next page, from `before` on ("": from the newest). */
static int read_page(struct tl_ctl_call *call, const char *queue, const char *before,
                     uint64_t limit, json_t **page)
{
    char target[TL_CTL_TARGET_MAX], most[24];
    uint64_t size = limit < TL_CHANGES_LIMIT_MAX ? limit : TL_CHANGES_LIMIT_MAX;
    snprintf(most, sizeof(most), "%" PRIu64, size);
    if (!tl_ctl_target(target, "changes", NULL) || !tl_ctl_target_add(target, "queue", queue) ||
        !tl_ctl_target_add(target, "before", before[0] != '\0' ? before : NULL) ||
        !tl_ctl_target_add(target, "limit", most))
        return TL_EXIT_PROBLEM;
    const struct tl_ctl_ask ask = {.method = "GET", .target = target};
    return tl_ctl_call_body(call, &ask, page);
}

/* Appends so many changes to the list. */
static int read_changes(struct tl_ctl_call *call, const char *queue, uint64_t limit, json_t *list)
{
    char before[TL_CHANGES_ID_MAX + 1] = "";
    bool more = true;
    while (more && json_array_size(list) < limit) {
        json_t *page;
        int status = read_page(call, queue, before, limit - json_array_size(list), &page);
        if (status != TL_EXIT_OK)
            return status;
        const char *next = tl_json_text(page, "next");
        more = *next != '\0';
        snprintf(before, sizeof(before), "%s", next);
        bool ok = json_array_extend(list, json_object_get(page, "changes")) == 0;
        json_decref(page);
        if (!ok) {
            fputs("tellerline: no memory for the changes\n", stderr);
            return TL_EXIT_FAILED;
        }
    }
    return TL_EXIT_OK;
}

/* ---- the table, newest last ---- */

static bool add_row(struct tl_table *table, const json_t *change)
{
    char at[64];
    struct tl_text made = {0};
    tl_terminal_time_of(tl_json_text(change, "at"), at, sizeof(at));
    tl_change_describe(&made, tl_json_text(change, "what"), json_object_get(change, "before"),
                       json_object_get(change, "after"));
    const char *const cells[] = {tl_json_text(change, "queue"), tl_json_text(change, "who"),
                                 tl_json_text(change, "from"), tl_json_text(change, "what")};
    tl_table_text(table, at);
    for (size_t i = 0; i < sizeof(cells) / sizeof(cells[0]); i++)
        tl_table_text(table, *cells[i] != '\0' ? cells[i] : "-");
    tl_table_text(table, made.data != NULL ? made.data : "");
    bool ok = !made.failed;
    tl_text_free(&made);
    return ok;
}

static bool write_table(const json_t *list)
{
    static const struct tl_column columns[] = {{"TIME", false}, {"QUEUE", false},
                                               {"WHO", false},  {"FROM", false},
                                               {"WHAT", false}, {"CHANGE", false}};
    struct tl_text out = {0};
    if (json_array_size(list) == 0) {
        printf("no changes are recorded\n");
        return true;
    }
    struct tl_table *table = tl_table_new(columns, sizeof(columns) / sizeof(columns[0]));
    bool ok = table != NULL;
    for (size_t i = json_array_size(list); ok && i > 0; i--)
        ok = add_row(table, json_array_get(list, i - 1));
    if (ok)
        tl_table_write(table, &out);
    ok = ok && !out.failed;
    if (ok)
        fputs(out.data, stdout);
    tl_text_free(&out);
    tl_table_free(&table);
    return ok;
}

int tl_command_log(const struct tl_ctl_options *options)
{
    struct tl_error err = {0};
    const char *queue = options->n_words > 0 ? options->words[0] : NULL;
    struct tl_ctl_call *call = tl_ctl_call_open(options, &err);
    if (call == NULL)
        return tl_ctl_fail(TL_EXIT_FAILED, &err);
    json_t *list = json_array();
    int status = read_changes(call, queue, options->limit > 0 ? options->limit : LIMIT, list);
    tl_ctl_call_close(&call);
    bool ok = true;
    if (status == TL_EXIT_OK)
        ok = options->json ? tl_json_write(json_pack("{s:O}", "changes", list)) : write_table(list);
    json_decref(list);
    if (ok)
        return status;
    tl_error_set(&err, TL_ERR_NOMEM, "no memory to show the changes");
    return tl_ctl_fail(TL_EXIT_FAILED, &err);
}
