/* SPDX-License-Identifier: Apache-2.0 */
/* `log`: the record of changes. */
#include "ctl/calls/calls.h"

enum { LIMIT = 50 /* changes that are shown */ };

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
