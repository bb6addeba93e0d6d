/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "common/base/units.h"

#include "ctl/calls/call.h"
#include "ctl/calls/tell.h"
#include "ctl/shell/confirm.h"
#include "ctl/shell/json.h"
#include "ctl/shell/table.h"
#include "ctl/shell/terminal.h"

/* ---- make ---- */

/* Writes the token to standard output, alone, so that a shell can take it; the rest is for people.
 */
static bool show(const json_t *token)
{
    bool ok = printf("%s\n", tl_json_text(token, "token")) > 0 && fflush(stdout) == 0;
    fprintf(stderr, "This is the token of %s, role %s. It is not kept and cannot be shown again.\n",
            tl_json_text(token, "name"), tl_json_text(token, "role"));
    return ok;
}

int tl_command_token_make(const struct tl_ctl_options *options)
{
    json_t *answer;
    json_t *body = json_pack("{s:s, s:s}", "name", options->words[0], "role", options->words[1]);
    const struct tl_ctl_ask ask = {
        .method = "POST", .target = "/v1/admin/tokens", .body = body, .sends = true};
    int status = tl_ctl_call_once(options, &ask, &answer);
    json_decref(body);
    if (status != TL_EXIT_OK)
        return status;
    bool ok = options->json ? tl_json_write(json_incref(answer)) : show(answer);
    json_decref(answer);
    return tl_ctl_written(ok);
}

/* ---- list ---- */

static bool write_table(const json_t *answer)
{
    const json_t *list = json_object_get(answer, "tokens");
    static const struct tl_column columns[] = {
        {"NAME", false}, {"ROLE", false}, {"MADE", false}, {"BY", false}, {"LAST USED", false}};
    size_t i;
    json_t *token;
    if (json_array_size(list) == 0) {
        printf("there are no tokens\n");
        return true;
    }
    struct tl_table *table = tl_table_new(columns, sizeof(columns) / sizeof(columns[0]));
    if (table == NULL)
        return false;
    json_array_foreach(list, i, token)
    {
        char made[TL_UNITS_TEXT_MAX], used[TL_UNITS_TEXT_MAX];
        tl_terminal_time_of(tl_json_text(token, "made_at"), made, sizeof(made));
        tl_terminal_time_of(tl_json_text(token, "last_used_at"), used, sizeof(used));
        tl_table_text(table, tl_json_text(token, "name"));
        tl_table_text(table, tl_json_text(token, "role"));
        tl_table_text(table, made);
        tl_table_text(table, tl_json_text(token, "made_by"));
        tl_table_text(table, used[0] != '\0' ? used : "never");
    }
    bool ok = tl_table_print(table);
    tl_table_free(&table);
    return ok;
}

int tl_command_token_list(const struct tl_ctl_options *options)
{
    return tl_ctl_show(options, "/v1/admin/tokens", write_table);
}

/* ---- revoke ---- */

int tl_command_token_revoke(const struct tl_ctl_options *options)
{
    char target[TL_CTL_TARGET_MAX], what[128];
    const char *name = options->words[0];
    json_t *answer;
    if (!tl_ctl_target(target, "tokens", name, NULL))
        return TL_EXIT_PROBLEM;
    snprintf(what, sizeof(what),
             "The token %.64s will open nothing any more. This cannot be undone.", name);
    int status = tl_ctl_confirm(options, what, NULL);
    if (status != TL_EXIT_OK)
        return status;
    const struct tl_ctl_ask ask = {.method = "DELETE", .target = target};
    status = tl_ctl_call_once(options, &ask, &answer);
    return status == TL_EXIT_OK ? tl_ctl_tell(options, answer, "the token %s is revoked", name)
                                : status;
}
