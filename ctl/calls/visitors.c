/* SPDX-License-Identifier: Apache-2.0 */
/* `visitor ...`, and blocks. */
#include <string.h>

#include "common/base/units.h"

#include "ctl/calls/calls.h"

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

static void write_members(const json_t *visitor)
{
    tl_json_flat(visitor, write_member, NULL);
}

int tl_command_visitor_show(const struct tl_ctl_options *options)
{
    const char *queue = options->words[0];
    const char *visitor = options->n_words > 1 ? options->words[1] : NULL;
    if ((visitor != NULL) == (options->reference != NULL))
        return tl_ctl_refuse(TL_EXIT_FAILED,
                             "name the visitor, by id or ticket, or give --reference CODE");
    struct tl_ctl_ask ask = visitor != NULL
                                ? tl_ctl_ask("GET", NULL, "/queues/%s/visitors/%s", queue, visitor)
                                : tl_ctl_ask("GET", NULL, "/queues/%s/visitors", queue);
    tl_ctl_ask_query(&ask, "reference", options->reference);
    return tl_ctl_show(options, &ask, write_members);
}

/* ---- move ---- */

int tl_command_visitor_move(const struct tl_ctl_options *options)
{
    const char *queue = options->words[0], *lane = options->words[2];
    json_t *answer;
    struct tl_ctl_ask ask = tl_ctl_ask("POST", json_pack("{s:s}", "lane", lane),
                                       "/queues/%s/visitors/%s/lane", queue, options->words[1]);
    int status = tl_ctl_call_once(options, &ask, &answer);
    if (status != TL_EXIT_OK)
        return status;
    const char *visitor = tl_json_text(answer, "visitor"), *was_in = tl_json_text(answer, "was_in");
    if (was_in[0] == '\0')
        return tl_ctl_tell(options, answer,
                           "%s: visitor %s waits in lane %s already; nothing was changed", queue,
                           visitor, lane);
    return tl_ctl_tell(options, answer, "%s: visitor %s is moved from lane %s to %s", queue,
                       visitor, was_in, lane);
}

/* ---- remove, forget ---- */

/* Asks the operator, then the control room. what: what becomes of the visitor. */
static int end_visit(const struct tl_ctl_options *options, struct tl_ctl_ask *ask, const char *what,
                     json_t **answer)
{
    char question[VALUE_MAX];
    if (ask->method == NULL)
        return TL_EXIT_PROBLEM;
    snprintf(question, sizeof(question), "Visitor %.64s of queue %s %s. This cannot be undone.",
             options->words[1], options->words[0], what);
    int status = tl_ctl_confirm(options, question, NULL);
    return status == TL_EXIT_OK ? tl_ctl_call_once(options, ask, answer) : status;
}

int tl_command_visitor_remove(const struct tl_ctl_options *options)
{
    const char *queue = options->words[0];
    json_t *answer;
    struct tl_ctl_ask ask =
        tl_ctl_ask("DELETE", NULL, "/queues/%s/visitors/%s", queue, options->words[1]);
    int status = end_visit(options, &ask, "loses the place, or the session", &answer);
    if (status != TL_EXIT_OK)
        return status;
    const char *visitor = tl_json_text(answer, "visitor");
    if (strcmp(tl_json_text(answer, "was"), "active") == 0)
        return tl_ctl_tell(options, answer, "%s: the session of visitor %s is revoked", queue,
                           visitor);
    return tl_ctl_tell(options, answer, "%s: visitor %s is removed from the line", queue, visitor);
}

int tl_command_visitor_forget(const struct tl_ctl_options *options)
{
    const char *queue = options->words[0];
    json_t *answer;
    struct tl_ctl_ask ask =
        tl_ctl_ask("POST", NULL, "/queues/%s/visitors/%s/forget", queue, options->words[1]);
    int status = end_visit(
        options, &ask, "loses the place, or the session, and the id is erased wherever it is kept",
        &answer);
    return status == TL_EXIT_OK
               ? tl_ctl_tell(options, answer,
                             "%s: the visitor is forgotten: the id was erased in %lld places",
                             queue, (long long)tl_json_number(answer, "places"))
               : status;
}

/* ---- blocks ---- */

int tl_command_block(const struct tl_ctl_options *options)
{
    char duration[TL_UNITS_TEXT_MAX] = "";
    const char *queue = options->queue;
    json_t *answer;
    if (options->for_ms > 0)
        tl_duration_format(options->for_ms, duration, sizeof(duration));
    struct tl_ctl_ask ask = tl_ctl_ask(
        "POST",
        json_pack("{s:s, s:s*, s:o*}", "prefix", options->words[0], "queue", queue, "for_seconds",
                  options->for_ms > 0 ? json_integer((json_int_t)((options->for_ms + 999) / 1000))
                                      : NULL),
        "/blocks");
    int status = tl_ctl_call_once(options, &ask, &answer);
    if (status != TL_EXIT_OK)
        return status;
    return tl_ctl_tell(
        options, answer,
        "%s is blocked from %s%s, %s%s\n"
        "It is not known which places its visitors hold: Redis keeps no addresses. Those who wait "
        "are\nnot seen any more and lose their places after waiting_ttl; sessions go on. "
        "`tellerline visitor\nremove` ends one at once.",
        tl_json_text(answer, "prefix"), queue != NULL ? "queue " : "all queues",
        queue != NULL ? queue : "",
        options->for_ms > 0 ? "for " : "until `tellerline block remove`", duration);
}

int tl_command_unblock(const struct tl_ctl_options *options)
{
    const char *queue = options->queue;
    json_t *answer;
    struct tl_ctl_ask ask = tl_ctl_ask("DELETE", NULL, "/blocks");
    tl_ctl_ask_query(&ask, "prefix", options->words[0]);
    tl_ctl_ask_query(&ask, "queue", queue);
    int status = tl_ctl_call_once(options, &ask, &answer);
    return status == TL_EXIT_OK
               ? tl_ctl_tell(options, answer, "%s is not blocked any more from %s%s",
                             tl_json_text(answer, "prefix"),
                             queue != NULL ? "queue " : "all queues", queue != NULL ? queue : "")
               : status;
}

static void write_blocks(const json_t *answer)
{
    static const struct tl_member members[] = {{"PREFIX", "prefix", TL_MEMBER_TEXT, ""},
                                               {"QUEUE", "queue", TL_MEMBER_TEXT, "all"},
                                               {"UNTIL", "until", TL_MEMBER_TIME, "unblocked"}};
    const json_t *list = json_object_get(answer, "blocks");
    if (json_array_size(list) > 0)
        tl_list_print(list, members, sizeof(members) / sizeof(members[0]));
    else
        printf("no prefix is blocked\n");
}

int tl_command_blocks(const struct tl_ctl_options *options)
{
    struct tl_ctl_ask ask = tl_ctl_ask("GET", NULL, "/blocks");
    return tl_ctl_show(options, &ask, write_blocks);
}
