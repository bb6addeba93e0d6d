/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "common/base/clock.h"
#include "common/base/units.h"

#include "ctl/calls/call.h"
#include "ctl/calls/hook_words.h"
#include "ctl/calls/tell.h"
#include "ctl/shell/json.h"
#include "ctl/shell/table.h"
#include "ctl/shell/terminal.h"

enum {
    TEST_WAIT_MS = 20000, /* for a notifier that looks once a second, and a slow hook */
    TEST_POLL_MS = 100,
};

#define PATH "/v1/admin/hooks"

/* ---- list ---- */

static bool write_table(const json_t *answer)
{
    const json_t *hooks = json_object_get(answer, "hooks");
    static const struct tl_column columns[] = {{"HOOK", false},   {"QUEUE", false}, {"TOLD", true},
                                               {"PENDING", true}, {"OLDEST", true}, {"LOST", true},
                                               {"STATE", false}};
    size_t i;
    json_t *hook;
    if (json_array_size(hooks) == 0) {
        printf("no hook watches a queue; list some under `hooks` in the configuration file, and "
               "run tellerline-notifier\n");
        return true;
    }
    struct tl_table *table = tl_table_new(columns, sizeof(columns) / sizeof(columns[0]));
    if (table == NULL)
        return false;
    json_array_foreach(hooks, i, hook)
    {
        char oldest[TL_UNITS_TEXT_MAX] = "-";
        char state[TL_HOOK_WORDS_MAX];
        if (json_is_integer(json_object_get(hook, "oldest_pending_ms")))
            tl_terminal_duration(tl_json_number(hook, "oldest_pending_ms"), oldest, sizeof(oldest));
        tl_hook_words(hook, state);
        tl_table_text(table, tl_json_text(hook, "hook"));
        tl_table_text(table, tl_json_text(hook, "queue"));
        tl_table_number(table, (uint64_t)tl_json_number(hook, "told"));
        tl_table_number(table, (uint64_t)tl_json_number(hook, "pending"));
        tl_table_text(table, oldest);
        tl_table_number(table, (uint64_t)tl_json_number(hook, "lost"));
        tl_table_text(table, state);
        tl_table_tint(table, tl_hook_tint(hook));
    }
    bool ok = tl_table_print(table);
    tl_table_free(&table);
    return ok;
}

int tl_command_hooks_list(const struct tl_ctl_options *options)
{
    return tl_ctl_show(options, PATH, write_table);
}

/* ---- test ---- */

/* The hook of this name in the answer of a list, borrowed; queue NULL: on its first queue. */
static const json_t *find_hook(const json_t *answer, const char *name, const char *queue)
{
    size_t i;
    json_t *hook;
    json_array_foreach(json_object_get(answer, "hooks"), i, hook)
    {
        if (strcmp(tl_json_text(hook, "hook"), name) == 0 &&
            (queue == NULL || strcmp(tl_json_text(hook, "queue"), queue) == 0))
            return hook;
    }
    return NULL;
}

/* Is it known how the test went? */
static bool is_over(const json_t *before, const json_t *hook, json_int_t event)
{
    return tl_json_number(hook, "event") >= event ||
           (*tl_json_text(hook, "problem") != '\0' &&
            strcmp(tl_json_text(hook, "asked_at"), tl_json_text(before, "asked_at")) != 0);
}

/* Waits until the hook was told of the event, or a request after it began has failed. *answer: the
 * last list, owned. */
static int wait_for(struct tl_ctl_call *call, const json_t *before, json_int_t event,
                    json_t **answer)
{
    const struct tl_ctl_ask ask = {.method = "GET", .target = PATH};
    const char *name = tl_json_text(before, "hook"), *queue = tl_json_text(before, "queue");
    for (int64_t end_ms = tl_clock_ms() + TEST_WAIT_MS;;) {
        const struct timespec pause = {.tv_nsec = TEST_POLL_MS * 1000000L};
        int status = tl_ctl_call_body(call, &ask, answer);
        if (status != TL_EXIT_OK || tl_clock_ms() >= end_ms ||
            is_over(before, find_hook(*answer, name, queue), event))
            return status;
        json_decref(*answer);
        *answer = NULL;
        (void)nanosleep(&pause, NULL); /* a signal ends it early, which does no harm */
    }
}

static int tell_outcome(const struct tl_ctl_options *options, const json_t *hook, json_int_t event)
{
    const char *name = options->words[0], *problem = tl_json_text(hook, "problem");
    json_t *copy = json_deep_copy(hook);
    if (tl_json_number(hook, "event") >= event)
        return tl_ctl_tell(options, copy, "%s: told, it answers %" JSON_INTEGER_FORMAT, name,
                           tl_json_number(hook, "status"));
    int status =
        *problem != '\0'
            ? tl_ctl_tell(options, copy, "%s: %s. It is tried again", name, problem)
            : tl_ctl_tell(options, copy,
                          "%s: not told within %d s; %" JSON_INTEGER_FORMAT " entries wait for it",
                          name, TEST_WAIT_MS / 1000, tl_json_number(hook, "pending"));
    return status == TL_EXIT_OK ? TL_EXIT_PROBLEM : status;
}

/* Sends the test through the queue of the hook as it was before, and waits for its outcome. */
static int try_hook(struct tl_ctl_call *call, const struct tl_ctl_options *options,
                    const json_t *before)
{
    const char *name = options->words[0], *queue = tl_json_text(before, "queue");
    char target[TL_CTL_TARGET_MAX];
    json_t *begun = NULL, *answer = NULL;
    if (!tl_ctl_target(target, "queues", queue, "hooks", name, "test", NULL))
        return TL_EXIT_PROBLEM;
    const struct tl_ctl_ask ask = {.method = "POST", .target = target};
    int status = tl_ctl_call_body(call, &ask, &begun);
    if (status == TL_EXIT_OK) {
        json_int_t event = tl_json_number(begun, "event");
        status = wait_for(call, before, event, &answer);
        if (status == TL_EXIT_OK)
            status = tell_outcome(options, find_hook(answer, name, queue), event);
    }
    json_decref(answer);
    json_decref(begun);
    return status;
}

int tl_command_hooks_test(const struct tl_ctl_options *options)
{
    const struct tl_ctl_ask ask = {.method = "GET", .target = PATH};
    struct tl_error err = {0};
    json_t *answer = NULL;
    struct tl_ctl_call *call = tl_ctl_call_open(options, &err);
    if (call == NULL)
        return tl_ctl_fail(TL_EXIT_FAILED, &err);
    int status = tl_ctl_call_body(call, &ask, &answer);
    const json_t *before = find_hook(answer, options->words[0], options->queue);
    if (status == TL_EXIT_OK && before == NULL) {
        tl_error_set(&err, TL_ERR_INVALID, "there is no hook %s that watches %s%s",
                     options->words[0], options->queue != NULL ? "queue " : "a queue",
                     options->queue != NULL ? options->queue : "");
        status = tl_ctl_fail(TL_EXIT_PROBLEM, &err);
    } else if (status == TL_EXIT_OK) {
        status = try_hook(call, options, before);
    }
    json_decref(answer);
    tl_ctl_call_close(&call);
    return status;
}
