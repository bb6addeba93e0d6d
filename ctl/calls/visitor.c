/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "common/base/units.h"

#include "ctl/calls/call.h"
#include "ctl/calls/tell.h"
#include "ctl/shell/confirm.h"
#include "ctl/shell/json.h"
#include "ctl/shell/terminal.h"

enum { VALUE_MAX = 256 };

/* ---- show ---- */

static void write_member(void *context, const char *name, const json_t *value)
{
    char text[VALUE_MAX], local[VALUE_MAX];
    (void)context;
    tl_json_show(value, text, sizeof(text));
    tl_terminal_time_of(text, local, sizeof(local));
    printf("%-12s %s\n", name, local);
}

static bool write_members(const json_t *visitor)
{
    tl_json_flat(visitor, write_member, NULL);
    return ferror(stdout) == 0;
}

int tl_command_visitor_show(const struct tl_ctl_options *options)
{
    char target[TL_CTL_TARGET_MAX];
    const char *visitor = options->n_words > 1 ? options->words[1] : NULL;
    if ((visitor != NULL) == (options->reference != NULL)) {
        fputs("tellerline: name the visitor, by id or ticket, or give --reference CODE\n", stderr);
        return TL_EXIT_FAILED;
    }
    if (!tl_ctl_target(target, "queues", options->words[0], "visitors", visitor, NULL) ||
        !tl_ctl_target_add(target, "reference", options->reference))
        return TL_EXIT_PROBLEM;
    return tl_ctl_show(options, target, write_members);
}

/* ---- move ---- */

int tl_command_visitor_move(const struct tl_ctl_options *options)
{
    char target[TL_CTL_TARGET_MAX];
    const char *queue = options->words[0], *lane = options->words[2];
    json_t *answer;
    if (!tl_ctl_target(target, "queues", queue, "visitors", options->words[1], "lane", NULL))
        return TL_EXIT_PROBLEM;
    json_t *body = json_pack("{s:s}", "lane", lane);
    const struct tl_ctl_ask ask = {.method = "POST", .target = target, .body = body, .sends = true};
    int status = tl_ctl_call_once(options, &ask, &answer);
    json_decref(body);
    if (status != TL_EXIT_OK)
        return status;
    char visitor[VALUE_MAX], was_in[VALUE_MAX];
    snprintf(visitor, sizeof(visitor), "%s", tl_json_text(answer, "visitor"));
    snprintf(was_in, sizeof(was_in), "%s", tl_json_text(answer, "was_in"));
    if (was_in[0] == '\0')
        return tl_ctl_tell(options, answer,
                           "%s: visitor %s waits in lane %s already; nothing was changed", queue,
                           visitor, lane);
    return tl_ctl_tell(options, answer, "%s: visitor %s is moved from lane %s to %s", queue,
                       visitor, was_in, lane);
}

/* ---- remove ---- */

int tl_command_visitor_remove(const struct tl_ctl_options *options)
{
    char target[TL_CTL_TARGET_MAX], what[VALUE_MAX], visitor[VALUE_MAX];
    const char *queue = options->words[0];
    json_t *answer;
    if (!tl_ctl_target(target, "queues", queue, "visitors", options->words[1], NULL))
        return TL_EXIT_PROBLEM;
    snprintf(what, sizeof(what),
             "Visitor %.64s of queue %s loses the place, or the session. This cannot be undone.",
             options->words[1], queue);
    int status = tl_ctl_confirm(options, what, NULL);
    if (status != TL_EXIT_OK)
        return status;
    const struct tl_ctl_ask ask = {.method = "DELETE", .target = target};
    status = tl_ctl_call_once(options, &ask, &answer);
    if (status != TL_EXIT_OK)
        return status;
    snprintf(visitor, sizeof(visitor), "%s", tl_json_text(answer, "visitor"));
    bool was_active = strcmp(tl_json_text(answer, "was"), "active") == 0;
    if (was_active)
        return tl_ctl_tell(options, answer, "%s: the session of visitor %s is revoked", queue,
                           visitor);
    return tl_ctl_tell(options, answer, "%s: visitor %s is removed from the line", queue, visitor);
}

/* ---- forget ---- */

int tl_command_visitor_forget(const struct tl_ctl_options *options)
{
    char target[TL_CTL_TARGET_MAX], what[VALUE_MAX];
    const char *queue = options->words[0];
    json_t *answer;
    if (!tl_ctl_target(target, "queues", queue, "visitors", options->words[1], "forget", NULL))
        return TL_EXIT_PROBLEM;
    snprintf(what, sizeof(what),
             "Visitor %.64s of queue %s loses the place, or the session, and the id is erased "
             "wherever it is kept. This cannot be undone.",
             options->words[1], queue);
    int status = tl_ctl_confirm(options, what, NULL);
    if (status != TL_EXIT_OK)
        return status;
    const struct tl_ctl_ask ask = {.method = "POST", .target = target};
    status = tl_ctl_call_once(options, &ask, &answer);
    if (status != TL_EXIT_OK)
        return status;
    long long places = (long long)json_integer_value(json_object_get(answer, "places"));
    return tl_ctl_tell(options, answer,
                       "%s: the visitor is forgotten: the id was erased in %lld places", queue,
                       places);
}
