/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "ctl/commands.h"
#include "ctl/help.h"
#include "ctl/manual.h"
#include "ctl/options.h"

/* Text in which nothing is roff's. What stands between two backquotes becomes bold. */
static void write_line(const char *text, size_t length)
{
    bool bold = false;
    if (length > 0 && (text[0] == '.' || text[0] == '\''))
        fputs("\\&", stdout);
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '`')
            bold = !bold;
        if (text[i] == '`')
            fputs(bold ? "\\fB" : "\\fR", stdout);
        else if (text[i] == '\\')
            fputs("\\e", stdout);
        else if (text[i] == '-')
            fputs("\\-", stdout);
        else
            putchar(text[i]);
    }
    fputs(bold ? "\\fR\n" : "\n", stdout);
}

/* Lines of the table. Those that are indented are examples, and stand as they are. */
static void write_text(const char *text)
{
    bool example = false;
    while (*text != '\0') {
        size_t length = strcspn(text, "\n");
        bool indented = text[0] == ' ';
        if (indented && !example)
            fputs(".PP\n.nf\n", stdout);
        else if (example && !indented)
            fputs(".fi\n.PP\n", stdout);
        example = indented;
        if (length > 0)
            write_line(text, length);
        text += length + (text[length] == '\n' ? 1 : 0);
    }
    fputs(example ? ".fi\n" : "", stdout);
}

static void write_options(const struct tl_ctl_command *command)
{
    struct tl_option table[TL_OPTIONS_MAX + 1];
    struct tl_ctl_options unused;
    tl_ctl_options_rows(command, &unused, table);
    for (const struct tl_option *option = table; option->name != NULL; option++) {
        char name[80];
        bool has_value = option->argument != NULL;
        int length = snprintf(name, sizeof(name), "`--%s`%s%s", option->name, has_value ? " " : "",
                              has_value ? option->argument : "");
        fputs(".TP\n", stdout);
        write_line(name, (size_t)length);
        write_line(option->help, strlen(option->help));
    }
}

static void write_command(const struct tl_ctl_command *command)
{
    char usage[256];
    snprintf(usage, sizeof(usage), "`%s` [options]%s%s", command->name,
             command->words[0] != '\0' ? " " : "", command->words);
    fputs(".SS ", stdout);
    write_line(usage, strlen(usage));
    write_text(command->summary);
    if (command->details[0] != '\0') {
        fputs(".PP\n", stdout);
        write_text(command->details);
    }
    if (command->other != NULL)
        printf(".PP\n.B tellerline %s\nis the same.\n", command->other);
    if (command->status != NULL)
        printf(".PP\nExit status 1: %s.\n", command->status);
    write_options(command);
}

static void write_rest(void)
{
    fputs(".SH EXIT STATUS\n", stdout);
    for (int status = 0; status < TL_EXITS; status++) {
        printf(".TP\n.B %d\n", status);
        write_text(tl_ctl_help_status(status));
    }
    fputs(
        ".SH ENVIRONMENT\n"
        ".TP\n.B TELLERLINE_TOKEN\nThe token for\n.BR \\-\\-server .\n"
        ".TP\n.B TELLERLINE_CONFIG\nThe configuration file, unless\n.B \\-\\-config\nnames one.\n"
        ".TP\n.BR TELLERLINE_... \nSettings, in place of those of the file.\n"
        ".TP\n.B NO_COLOR\nIf it is set, nothing is coloured.\n"
        ".TP\n.B TZ\nThe zone of the times that are shown. With\n.B \\-\\-json\nthey are in UTC.\n"
        ".SH FILES\n.TP\n.I /etc/tellerline/tellerline.yaml\nThe configuration of the Debian "
        "package.\n"
        ".TP\n.I /usr/share/doc/tellerline/docs/README.md\nThe documentation.\n"
        ".SH SEE ALSO\n.BR tellerline\\-worker (8),\n.BR tellerline\\-dispatcher (8),\n"
        ".BR tellerline\\-admitter (8),\n.BR tellerline\\-expirer (8)\n",
        stdout);
}

void tl_ctl_manual(void)
{
    size_t n;
    const struct tl_ctl_command *commands = tl_ctl_commands(&n);
    printf(".TH TELLERLINE 1 \"\" \"Tellerline " TELLERLINE_VERSION "\" \"User Commands\"\n"
           ".SH NAME\ntellerline \\- operator's command of a virtual waiting room\n"
           ".SH SYNOPSIS\n.B tellerline\n.I COMMAND\n[options] [operands]\n.br\n"
           ".B tellerline\n.RI [ COMMAND ]\n.B \\-\\-help\n.br\n.B tellerline \\-\\-version\n"
           ".SH DESCRIPTION\nTellerline is a self\\-hosted virtual waiting room. This is the "
           "operator's command:\nit runs, checks, watches and changes it. Options may stand among "
           "the operands;\n.B \\-\\-\nends them.\n.SH COMMANDS\n");
    for (size_t i = 0; i < n; i++) {
        if (!commands[i].hidden)
            write_command(&commands[i]);
    }
    write_rest();
}
