/* SPDX-License-Identifier: Apache-2.0 */
/* What a change has made, as a line of text; and `log`. */
#include <inttypes.h>
#include <string.h>

#include "common/base/text.h"
#include "common/base/units.h"
#include "common/config/queue_settings.h"
#include "common/control/control.h"
#include "common/wire/names.h"

#include "ctl/calls/calls.h"

enum {
    SHOWN_MAX = 200, /* bytes of a value */
    LIMIT = 50,      /* changes that are shown */
};

/* ---- a change in words ---- */

/* Times that are no settings: of a block and of a recovery. */
static bool is_time(const char *name)
{
    return strcmp(name, "until") == 0 || strcmp(name, "recover_until") == 0;
}

static bool is_plain(const char *value)
{
    return tl_printable(value, strlen(value), SHOWN_MAX) && strpbrk(value, "\",") == NULL;
}

/* The value as people read it. */
static void show(const char *name, const char *value, char shown[SHOWN_MAX + 1])
{
    char text[TL_QUEUE_VALUE_MAX];
    uint64_t ms;
    const char *words = tl_queue_setting_show(name, value, text);
    if (is_time(name) && tl_number_parse(value, &ms, NULL) && ms <= INT64_MAX) {
        tl_time_format((int64_t)ms, text, sizeof(text));
        words = ms == 0 ? "never" : text;
    }
    if (is_plain(words))
        snprintf(shown, SHOWN_MAX + 1, "%s", words);
    else
        tl_quote(words, shown, SHOWN_MAX + 1);
}

void tl_change_value(struct tl_text *out, const char *name, const char *value)
{
    char shown[SHOWN_MAX + 1];
    show(name, value, shown);
    tl_text_append(out, "%s=%s", name, shown);
}

void tl_change_was(struct tl_text *out, const char *name, const char *old)
{
    char shown[SHOWN_MAX + 1];
    show(name, old != NULL ? old : "", shown);
    tl_text_append(out, " (was %s)\n", old != NULL ? shown : "not set");
}

const char *tl_change_text(const json_t *members, const char *name, struct tl_text *made)
{
    const json_t *value = json_object_get(members, name);
    const char *language;
    json_t *text;
    if (!json_is_object(value))
        return json_string_value(value);
    json_object_foreach((json_t *)(uintptr_t)value, language, text)
    {
        tl_text_append(made, "%s[%s] %s", made->length > 0 ? " " : "", language,
                       json_is_string(text) ? json_string_value(text) : "");
    }
    if (made->failed)
        tl_no_memory();
    return made->data != NULL ? made->data : "";
}

static void describe_member(struct tl_text *out, const char *name, const json_t *before,
                            const json_t *after)
{
    char shown[SHOWN_MAX + 1];
    const char *separator = out->length > 0 ? ", " : "";
    struct tl_text made_old = {0}, made_new = {0};
    const char *old = tl_change_text(before, name, &made_old);
    const char *value = tl_change_text(after, name, &made_new);
    show(name, old != NULL ? old : value != NULL ? value : "", shown);
    tl_text_append(out, "%s%s ", separator, name);
    if (old != NULL && value != NULL && strcmp(old, value) != 0) {
        tl_text_append(out, "%s -> ", shown);
        show(name, value, shown);
    }
    tl_text_append(out, "%s%s", shown, value == NULL ? " (gone)" : "");
    tl_text_free(&made_old);
    tl_text_free(&made_new);
}

static void describe(struct tl_text *out, const char *what, const json_t *before,
                     const json_t *after)
{
    const char *name;
    json_t *value;
    if (strcmp(what, "create") == 0) {
        tl_text_append(out, "%zu settings", json_object_size(after));
        return;
    }
    json_object_foreach((json_t *)(uintptr_t)before, name, value)
    {
        describe_member(out, name, before, after);
    }
    json_object_foreach((json_t *)(uintptr_t)after, name, value)
    {
        if (json_object_get(before, name) == NULL)
            describe_member(out, name, before, after);
    }
}

/* ---- log ---- */

/* Puts so many changes into the list, the newest last. */
static int read_changes(struct tl_ctl_call *call, const char *queue, uint64_t limit, json_t *list)
{
    char before[TL_CHANGES_ID_MAX + 1] = "", most[24];
    bool more = true;
    size_t i;
    json_t *change;
    while (more && json_array_size(list) < limit) {
        json_t *page;
        uint64_t size = limit - json_array_size(list);
        struct tl_ctl_ask ask = tl_ctl_ask("GET", NULL, "/changes");
        snprintf(most, sizeof(most), "%" PRIu64,
                 size < TL_CONTROL_PAGE_MAX ? size : TL_CONTROL_PAGE_MAX);
        tl_ctl_ask_query(&ask, "queue", queue);
        tl_ctl_ask_query(&ask, "starting_after", before[0] != '\0' ? before : NULL);
        tl_ctl_ask_query(&ask, "limit", most);
        int status = tl_ctl_call_body(call, &ask, &page);
        if (status != TL_EXIT_OK)
            return status;
        json_t *changes = json_object_get(page, "changes");
        const json_t *last = json_array_get(changes, json_array_size(changes) - 1);
        snprintf(before, sizeof(before), "%s", tl_json_text(last, "id"));
        more = json_is_true(json_object_get(page, "has_more"));
        json_array_foreach(changes, i, change)
        {
            (void)json_array_insert(list, 0, change);
        }
        json_decref(page);
    }
    return TL_EXIT_OK;
}

static void add_row(struct tl_table *table, const json_t *change)
{
    struct tl_text made = {0};
    describe(&made, tl_json_text(change, "what"), json_object_get(change, "before"),
             json_object_get(change, "after"));
    if (made.failed)
        tl_no_memory();
    const char *const cells[] = {tl_json_text(change, "queue"), tl_json_text(change, "who"),
                                 tl_json_text(change, "from"), tl_json_text(change, "what")};
    tl_table_time(table, tl_json_text(change, "at"), "");
    for (size_t i = 0; i < sizeof(cells) / sizeof(cells[0]); i++)
        tl_table_text(table, *cells[i] != '\0' ? cells[i] : "-");
    tl_table_text(table, made.data != NULL ? made.data : "");
    tl_text_free(&made);
}

static void write_table(const json_t *list)
{
    static const struct tl_column columns[] = {{"TIME", false}, {"QUEUE", false},
                                               {"WHO", false},  {"FROM", false},
                                               {"WHAT", false}, {"CHANGE", false}};
    size_t i;
    json_t *change;
    if (json_array_size(list) == 0) {
        printf("no changes are recorded\n");
        return;
    }
    struct tl_table *table = TL_TABLE(columns);
    json_array_foreach(list, i, change)
    {
        add_row(table, change);
    }
    tl_table_print(&table);
}

int tl_command_log(const struct tl_ctl_options *options)
{
    struct tl_error err = {0};
    const char *queue = options->queue;
    struct tl_ctl_call *call = tl_ctl_call_open(options, &err);
    if (call == NULL)
        return tl_ctl_fail(TL_EXIT_FAILED, &err);
    json_t *list = json_array();
    int status = read_changes(call, queue, options->limit > 0 ? options->limit : LIMIT, list);
    tl_ctl_call_close(&call);
    if (status == TL_EXIT_OK && options->output != TL_OUTPUT_TABLE)
        tl_data_write(options->output, json_pack("{s:O}", "changes", list));
    else if (status == TL_EXIT_OK)
        write_table(list);
    json_decref(list);
    return status;
}
