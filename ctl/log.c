#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <jansson.h>

#include "common/base/units.h"
#include "common/store/changes.h"

#include "ctl/change_text.h"
#include "ctl/command.h"
#include "ctl/json.h"
#include "ctl/session.h"
#include "ctl/table.h"

enum { SHOWN = 50 }; /* without --limit */

/* ---- reading: the changes as JSON, newest first ---- */

struct page {
    json_t *list;
    char last[TL_CHANGES_ID_MAX + 1];
};

static bool add(void *context, const struct tl_changes_entry *change, struct tl_error *err)
{
    struct page *page = context;
    char at[TL_UNITS_TEXT_MAX];
    json_t *before = tl_change_members(change->before, err);
    json_t *after = before != NULL ? tl_change_members(change->after, err) : NULL;
    if (after == NULL) {
        json_decref(before);
        return false;
    }
    tl_time_format(change->at_ms, at, sizeof(at));
    snprintf(page->last, sizeof(page->last), "%s", change->id);
    json_t *object =
        json_pack("{s:s, s:s, s:s*, s:s, s:s, s:s, s:o, s:o}", "id", change->id, "at", at, "queue",
                  change->queue[0] != '\0' ? change->queue : NULL, "who", change->who, "from",
                  change->from, "what", change->what, "before", before, "after", after);
    return json_array_append_new(page->list, object) == 0 ||
           tl_error_set(err, TL_ERR_NOMEM, "no memory for a change, or it holds no valid text");
}

static json_t *read_changes(struct tl_ctl_session *session, const char *queue, uint64_t limit,
                            struct tl_error *err)
{
    struct tl_redis *redis = tl_ctl_session_redis(session, NULL, err);
    struct page page = {.list = json_array()};
    bool ok = redis != NULL &&
              (page.list != NULL || tl_error_set(err, TL_ERR_NOMEM, "no memory for the changes"));
    bool more = true;
    while (ok && more && json_array_size(page.list) < limit) {
        size_t had = json_array_size(page.list), missing = limit - had;
        const struct tl_changes_query query = {
            .queue = queue,
            .before = had > 0 ? page.last : NULL,
            .limit = missing < TL_CHANGES_LIMIT_MAX ? missing : TL_CHANGES_LIMIT_MAX,
        };
        ok = tl_changes_read(redis, session->config->redis.key_prefix, &query, add, &page, err);
        more = json_array_size(page.list) - had == query.limit;
    }
    if (!ok) {
        json_decref(page.list);
        page.list = NULL;
    }
    return page.list;
}

/* ---- the table, newest last ---- */

static const char *text_of(const json_t *change, const char *name)
{
    const char *text = json_string_value(json_object_get(change, name));
    return text != NULL ? text : "";
}

/* In the local zone: "2026-12-01 20:00:00 KST". */
static void format_local(const char *utc, char *text, size_t size)
{
    int64_t ms = 0;
    struct tm local;
    (void)tl_time_parse(utc, &ms, NULL);
    time_t seconds = (time_t)(ms / 1000);
    if (localtime_r(&seconds, &local) == NULL ||
        strftime(text, size, "%Y-%m-%d %H:%M:%S %Z", &local) == 0)
        snprintf(text, size, "%s", utc);
}

static bool add_row(struct tl_table *table, const json_t *change)
{
    char at[64];
    struct tl_text made = {0};
    format_local(text_of(change, "at"), at, sizeof(at));
    tl_change_describe(&made, text_of(change, "what"), json_object_get(change, "before"),
                       json_object_get(change, "after"));
    const char *const cells[] = {text_of(change, "queue"), text_of(change, "who"),
                                 text_of(change, "from"), text_of(change, "what")};
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
    struct tl_ctl_session session;
    const char *queue = options->n_words > 0 ? options->words[0] : NULL;
    struct tl_keys keys;
    if (!tl_ctl_session_open(&session, options, &err))
        return tl_ctl_fail(TL_EXIT_FAILED, &err);
    json_t *list =
        queue == NULL || tl_ctl_session_keys(&session, queue, &keys, &err)
            ? read_changes(&session, queue, options->limit > 0 ? options->limit : SHOWN, &err)
            : NULL;
    tl_ctl_session_close(&session);
    if (list == NULL)
        return tl_ctl_fail(tl_ctl_status_of(&err), &err);
    bool ok;
    if (options->json) {
        ok = tl_json_write(json_pack("{s:o}", "changes", list));
    } else {
        ok = write_table(list);
        json_decref(list);
    }
    if (ok)
        return TL_EXIT_OK;
    tl_error_set(&err, TL_ERR_NOMEM, "no memory to show the changes");
    return tl_ctl_fail(TL_EXIT_FAILED, &err);
}
