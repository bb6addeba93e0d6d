/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "common/role/options.h"

#include "ctl/commands.h"
#include "ctl/help.h"
#include "ctl/options.h"

const char *tl_ctl_help_status(int status)
{
    static const char *const meanings[TL_EXITS] = {
        [TL_EXIT_OK] = "ok",
        [TL_EXIT_PROBLEM] = "a problem was found, or what was asked for is wrong; nothing changed",
        [TL_EXIT_FAILED] = "failed: a wrong command line, or no answer of Redis or the server",
        [TL_EXIT_UNCONFIRMED] = "not confirmed: nobody said yes, and --yes was not given",
        [TL_EXIT_REFUSED] = "the server refuses the token, or its role does not suffice",
    };
    return meanings[status];
}

static bool begins_with(const struct tl_ctl_command *command, const char *first)
{
    size_t length = first != NULL ? strlen(first) : 0;
    return first == NULL ||
           (strncmp(command->name, first, length) == 0 && command->name[length] == ' ');
}

void tl_ctl_help_list(const char *first, FILE *out)
{
    size_t n;
    const struct tl_ctl_command *commands = tl_ctl_commands(&n);
    int group = -1;
    fprintf(out,
            "Usage: tellerline %s [options]\n\nTellerline, a self-hosted virtual waiting room.\n",
            first != NULL ? first : "COMMAND");
    for (size_t i = 0; i < n; i++) {
        if (commands[i].hidden || !begins_with(&commands[i], first))
            continue;
        if (group != (int)commands[i].group)
            fprintf(out, "\n%s:\n", tl_ctl_group_title(commands[i].group));
        group = (int)commands[i].group;
        fprintf(out, "  %-17s %s\n", commands[i].name, commands[i].summary);
    }
    fprintf(out, "\n`tellerline COMMAND --help` shows its options.\n\nExit status:\n");
    for (int status = 0; status < TL_EXITS; status++)
        fprintf(out, "  %d  %s\n", status, tl_ctl_help_status(status));
}

void tl_ctl_help_command(const struct tl_ctl_command *command, FILE *out)
{
    struct tl_option table[TL_OPTIONS_MAX + 1];
    struct tl_ctl_options options;
    tl_ctl_options_rows(command, &options, table);
    fprintf(out, "Usage: tellerline %s [options]%s%s\n\n%s\n", command->name,
            command->words[0] != '\0' ? " " : "", command->words, command->summary);
    if (command->details[0] != '\0')
        fprintf(out, "\n%s\n", command->details);
    if (command->other != NULL)
        fprintf(out, "\n`tellerline %s` is the same.\n", command->other);
    if (command->status != NULL)
        fprintf(out, "\nExit status: 0 ok, 1 %s, 2 failed.\n", command->status);
    fprintf(out, "\nOptions:\n");
    tl_options_print(table, out);
}
