/* SPDX-License-Identifier: Apache-2.0 */
/* `webhook test`. */
#include <string.h>

#include "common/base/clock.h"
#include "common/base/units.h"

#include "ctl/calls/calls.h"

enum {
    TEST_WAIT_MS = 20000, /* for a notifier that looks once a second, and a slow webhook */
    TEST_POLL_MS = 100,
};

/* The webhook of this name in the answer of a list, borrowed; queue NULL: on its first queue. */
static const json_t *find_webhook(const json_t *answer, const char *name, const char *queue)
{
    size_t i;
    json_t *webhook;
    json_array_foreach(json_object_get(answer, "webhooks"), i, webhook)
    {
        if (strcmp(tl_json_text(webhook, "name"), name) == 0 &&
            (queue == NULL || strcmp(tl_json_text(webhook, "queue"), queue) == 0))
            return webhook;
    }
    return NULL;
}

/* Is it known how the test went? */
static bool is_over(const json_t *before, const json_t *webhook, json_int_t event)
{
    return tl_json_number(webhook, "event") >= event ||
           (*tl_json_text(webhook, "problem") != '\0' &&
            strcmp(tl_json_text(webhook, "asked_at"), tl_json_text(before, "asked_at")) != 0);
}

/* Waits until the webhook was told of the event, or a request after it began has failed. *answer:
 * the last list, owned. */
static int wait_for(struct tl_ctl_call *call, const json_t *before, json_int_t event,
                    json_t **answer)
{
    const struct tl_ctl_ask ask = {.operation = "listWebhooks"};
    const char *name = tl_json_text(before, "name"), *queue = tl_json_text(before, "queue");
    for (int64_t end_ms = tl_clock_ms() + TEST_WAIT_MS;;) {
        int status = tl_ctl_call_body(call, &ask, answer);
        if (status != TL_EXIT_OK || tl_clock_ms() >= end_ms ||
            is_over(before, find_webhook(*answer, name, queue), event))
            return status;
        json_decref(*answer);
        *answer = NULL;
        tl_ctl_pause(TEST_POLL_MS);
    }
}

static int tell_outcome(const struct tl_ctl_options *options, const json_t *webhook,
                        json_int_t event)
{
    const char *name = options->words[0], *problem = tl_json_text(webhook, "problem");
    json_t *copy = json_deep_copy(webhook);
    if (tl_json_number(webhook, "event") >= event)
        return tl_ctl_tell(options, copy, "%s: told, it answers %" JSON_INTEGER_FORMAT, name,
                           tl_json_number(webhook, "status"));
    int status =
        *problem != '\0'
            ? tl_ctl_tell(options, copy, "%s: %s. It is tried again", name, problem)
            : tl_ctl_tell(options, copy,
                          "%s: not told within %d s; %" JSON_INTEGER_FORMAT " entries wait for it",
                          name, TEST_WAIT_MS / 1000, tl_json_number(webhook, "pending"));
    return status == TL_EXIT_OK ? TL_EXIT_PROBLEM : status;
}

/* Sends the test through the queue of the webhook as it was before, and waits for its outcome. */
static int try_webhook(struct tl_ctl_call *call, const struct tl_ctl_options *options,
                       const json_t *before)
{
    const char *name = options->words[0], *queue = tl_json_text(before, "queue");
    json_t *begun = NULL, *answer = NULL;
    const struct tl_ctl_ask ask = {.operation = "testWebhook",
                                   .arguments =
                                       json_pack("{s:s, s:s}", "queue", queue, "name", name)};
    int status = tl_ctl_call_body(call, &ask, &begun);
    if (status == TL_EXIT_OK) {
        json_int_t event = tl_json_number(begun, "event");
        status = wait_for(call, before, event, &answer);
        if (status == TL_EXIT_OK)
            status = tell_outcome(options, find_webhook(answer, name, queue), event);
    }
    json_decref(answer);
    json_decref(begun);
    return status;
}

int tl_command_webhook_test(const struct tl_ctl_options *options)
{
    const struct tl_ctl_ask ask = {.operation = "listWebhooks"};
    struct tl_error err = {0};
    json_t *answer = NULL;
    struct tl_ctl_call *call = tl_ctl_call_open(options, &err);
    if (call == NULL)
        return tl_ctl_fail(TL_EXIT_FAILED, &err);
    int status = tl_ctl_call_body(call, &ask, &answer);
    const json_t *before = find_webhook(answer, options->words[0], options->queue);
    if (status == TL_EXIT_OK && before == NULL) {
        status = tl_ctl_refuse(TL_EXIT_PROBLEM, "there is no webhook %s that watches %s%s",
                               options->words[0], options->queue != NULL ? "queue " : "a queue",
                               options->queue != NULL ? options->queue : "");
    } else if (status == TL_EXIT_OK) {
        status = try_webhook(call, options, before);
    }
    json_decref(answer);
    tl_ctl_call_close(&call);
    return status;
}
