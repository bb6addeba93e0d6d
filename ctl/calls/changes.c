/* SPDX-License-Identifier: Apache-2.0 */
/* What a change has made, as a line of text; and `log`. */
#include <inttypes.h>
#include <string.h>

#include "common/base/text.h"

#include "ctl/calls/calls.h"

enum {
    SHOWN_MAX = 200, /* bytes of a value */
    LIMIT = 50,      /* changes that are shown */
};

/* ---- a change in words ---- */

/* A value as people read it: times are local, odd bytes are '?', long values are cut. A notice in
 * several languages is "[en] TEXT [ko] TEXT". */
static void append(struct tl_text *out, const json_t *value)
{
    char text[SHOWN_MAX + 1], local[SHOWN_MAX + 1];
    const char *language;
    json_t *inner;
    struct tl_text made = {0};
    json_object_foreach((json_t *)(uintptr_t)value, language, inner)
    {
        tl_text_append(&made, "%s[%s] %s", made.length > 0 ? " " : "", language,
                       json_is_string(inner) ? json_string_value(inner) : "");
    }
    const char *notice = tl_xtext(&made);
    tl_json_show(value, text, sizeof(text));
    tl_terminal_time_of(*notice != '\0' ? notice : text, local, sizeof(local));
    tl_text_free(&made);
    if (tl_printable(local, strlen(local), SHOWN_MAX) && strpbrk(local, "\",") == NULL)
        snprintf(text, sizeof(text), "%s", local);
    else
        tl_quote(local, text, sizeof(text));
    tl_text_append(out, "%s", text);
}

void tl_change_value(struct tl_text *out, const char *name, const json_t *value)
{
    tl_text_append(out, "%s=", name);
    append(out, value);
}

void tl_change_was(struct tl_text *out, const json_t *old)
{
    tl_text_append(out, " (was ");
    if (old != NULL)
        append(out, old);
    tl_text_append(out, old != NULL ? ")\n" : "not set)\n");
}

static void describe_member(struct tl_text *out, const char *name, const json_t *before,
                            const json_t *after)
{
    tl_text_append(out, "%s%s ", out->length > 0 ? ", " : "", name);
    append(out, before != NULL ? before : after);
    if (before != NULL && after != NULL && !json_equal(before, after)) {
        tl_text_append(out, " -> ");
        append(out, after);
    }
    tl_text_append(out, "%s", after == NULL ? " (gone)" : "");
}

/* ---- log ---- */

/* Nothing is recorded of the queue: is there one? The record of a deleted queue is still there. */
static int look_for(struct tl_ctl_call *call, const char *queue)
{
    json_t *found;
    const struct tl_ctl_ask ask = {.operation = "getQueue",
                                   .arguments = json_pack("{s:s}", "queue", queue)};
    int status = tl_ctl_call_body(call, &ask, &found);
    json_decref(found);
    return status;
}

void tl_change_describe(const json_t *change, struct tl_text *out)
{
    const char *name;
    json_t *value;
    const json_t *before = json_object_get(change, "before");
    const json_t *after = json_object_get(change, "after");
    if (strcmp(tl_json_text(change, "what"), "create") == 0) {
        tl_text_append(out, "%zu settings", json_object_size(after));
        return;
    }
    json_object_foreach((json_t *)(uintptr_t)before, name, value)
    {
        describe_member(out, name, value, json_object_get(after, name));
    }
    json_object_foreach((json_t *)(uintptr_t)after, name, value)
    {
        if (json_object_get(before, name) == NULL)
            describe_member(out, name, NULL, value);
    }
}

static const struct tl_member columns[] = {
    TL_MEMBER("TIME", "at", TIME, ""),
    TL_MEMBER("QUEUE", "queue", TEXT, "-"),
    TL_MEMBER("WHO", "who", TEXT, "-"),
    TL_MEMBER("FROM", "from", TEXT, "-"),
    TL_MEMBER("WHAT", "what", TEXT, "-"),
    TL_MEMBER_SHOWN("CHANGE", TEXT, tl_change_describe, NULL),
    {.title = NULL}};

static void write_list(const json_t *list)
{
    if (json_array_size(list) == 0)
        printf("no changes are recorded\n");
    else
        tl_list_print(list, columns);
}

/* Of the list of changes, which begins with the newest: the same in the order of time. */
static json_t *turned(const json_t *changes)
{
    json_t *list = json_array(), *change;
    size_t i;
    json_array_foreach(changes, i, change)
    {
        (void)json_array_insert(list, 0, change);
    }
    return list;
}

int tl_command_log(const struct tl_ctl_options *options)
{
    struct tl_error err = {0};
    const char *queue = options->queue;
    struct tl_ctl_call *call = tl_ctl_call_open(options, &err);
    if (call == NULL)
        return tl_ctl_fail(TL_EXIT_FAILED, &err);
    const json_int_t limit = options->limit > 0 ? (json_int_t)options->limit : LIMIT;
    const struct tl_ctl_ask ask = {.operation = "listChanges",
                                   .arguments =
                                       json_pack("{s:s*, s:I}", "queue", queue, "limit", limit)};
    json_t *answer;
    int status = tl_ctl_call_body(call, &ask, &answer);
    json_t *list = turned(json_object_get(answer, "changes"));
    if (status == TL_EXIT_OK && queue != NULL && json_array_size(list) == 0)
        status = look_for(call, queue);
    tl_ctl_call_close(&call);
    if (status == TL_EXIT_OK && options->output != TL_OUTPUT_TABLE)
        tl_data_write(options->output, json_pack("{s:O}", "changes", list));
    else if (status == TL_EXIT_OK)
        write_list(list);
    json_decref(list);
    json_decref(answer);
    return status;
}
