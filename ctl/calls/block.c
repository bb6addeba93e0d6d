/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "common/base/units.h"

#include "ctl/calls/call.h"
#include "ctl/calls/tell.h"
#include "ctl/shell/json.h"
#include "ctl/shell/table.h"
#include "ctl/shell/terminal.h"

#define PATH "/v1/admin/blocks"

int tl_command_block(const struct tl_ctl_options *options)
{
    char duration[TL_UNITS_TEXT_MAX] = "";
    const char *queue = options->queue;
    json_t *answer;
    if (options->for_ms > 0)
        tl_duration_format(options->for_ms, duration, sizeof(duration));
    json_t *body = json_pack("{s:s, s:s*, s:s*}", "prefix", options->words[0], "queue", queue,
                             "for", options->for_ms > 0 ? duration : NULL);
    const struct tl_ctl_ask ask = {.method = "POST", .target = PATH, .body = body, .sends = true};
    int status = tl_ctl_call_once(options, &ask, &answer);
    json_decref(body);
    if (status != TL_EXIT_OK)
        return status;
    char prefix[80];
    snprintf(prefix, sizeof(prefix), "%s", tl_json_text(answer, "prefix"));
    return tl_ctl_tell(
        options, answer,
        "%s is blocked from %s%s, %s%s\n"
        "It is not known which places its visitors hold: Redis keeps no addresses. Those who wait "
        "are\nnot seen any more and lose their places after waiting_ttl; sessions go on. "
        "`tellerline visitor\nremove` ends one at once.",
        prefix, queue != NULL ? "queue " : "all queues", queue != NULL ? queue : "",
        options->for_ms > 0 ? "for " : "until `tellerline unblock`", duration);
}

int tl_command_unblock(const struct tl_ctl_options *options)
{
    char target[TL_CTL_TARGET_MAX] = PATH, prefix[80];
    const char *queue = options->queue;
    json_t *answer;
    if (!tl_ctl_target_add(target, "prefix", options->words[0]) ||
        !tl_ctl_target_add(target, "queue", queue))
        return TL_EXIT_FAILED;
    const struct tl_ctl_ask ask = {.method = "DELETE", .target = target};
    int status = tl_ctl_call_once(options, &ask, &answer);
    if (status != TL_EXIT_OK)
        return status;
    snprintf(prefix, sizeof(prefix), "%s", tl_json_text(answer, "prefix"));
    return tl_ctl_tell(options, answer, "%s is not blocked any more from %s%s", prefix,
                       queue != NULL ? "queue " : "all queues", queue != NULL ? queue : "");
}

static bool write_table(const json_t *answer)
{
    const json_t *list = json_object_get(answer, "blocks");
    static const struct tl_column columns[] = {
        {"PREFIX", false}, {"QUEUE", false}, {"UNTIL", false}};
    size_t i;
    json_t *block;
    if (json_array_size(list) == 0) {
        printf("no prefix is blocked\n");
        return true;
    }
    struct tl_table *table = tl_table_new(columns, sizeof(columns) / sizeof(columns[0]));
    if (table == NULL)
        return false;
    json_array_foreach(list, i, block)
    {
        char until[TL_UNITS_TEXT_MAX];
        const char *queue = tl_json_text(block, "queue");
        tl_terminal_time_of(tl_json_text(block, "until"), until, sizeof(until));
        tl_table_text(table, tl_json_text(block, "prefix"));
        tl_table_text(table, *queue != '\0' ? queue : "all");
        tl_table_text(table, until[0] != '\0' ? until : "unblocked");
    }
    bool ok = tl_table_print(table);
    tl_table_free(&table);
    return ok;
}

int tl_command_blocks(const struct tl_ctl_options *options)
{
    return tl_ctl_show(options, PATH, write_table);
}
