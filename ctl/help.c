/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "common/config/queue_table.h"
#include "common/role/options.h"
#include "common/store/queue.h"

#include "ctl/commands.h"
#include "ctl/help.h"

enum { WIDTH = 100 };

/* ---- help ---- */

/* What an exit status means, as for all commands. */
static const char *meaning_of(int status)
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

/* Is it one of two words, the first of them this one? NULL: whatever it is. */
static bool is_of(const struct tl_ctl_command *command, const char *first)
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
        if (commands[i].hidden || !is_of(&commands[i], first))
            continue;
        if (group != (int)commands[i].group)
            fprintf(out, "\n%s:\n", tl_ctl_group_title(commands[i].group));
        group = (int)commands[i].group;
        fprintf(out, "  %-17s %s\n", commands[i].name, commands[i].summary);
    }
    fprintf(out, "\n`tellerline help COMMAND` shows its options.\n\nExit status:\n");
    for (int status = 0; status < TL_EXITS; status++)
        fprintf(out, "  %d  %s\n", status, meaning_of(status));
}

/* Writes paragraphs, each broken to lines of at most WIDTH columns; lines that are indented are
 * examples, and stand as they are. */
static void write_paragraphs(const char *text, FILE *out)
{
    while (*text != '\0') {
        size_t length = strcspn(text, "\n"), at = 0;
        while (length - at > WIDTH && text[0] != ' ') {
            size_t end = at + WIDTH;
            while (end > at && text[end] != ' ')
                end--;
            fprintf(out, "%.*s\n", (int)(end - at), text + at);
            at = end + 1;
        }
        fprintf(out, "%.*s\n", (int)(length - at), text + at);
        text += length + (text[length] == '\n' ? 1 : 0);
    }
}

void tl_ctl_help_command(const struct tl_ctl_command *command, FILE *out)
{
    struct tl_option table[TL_OPTIONS_MAX + 1];
    struct tl_ctl_options options;
    tl_ctl_options_rows(command, &options, table);
    fprintf(out, "Usage: tellerline %s [options]%s%s\n\n%s\n", command->name,
            command->words != NULL ? " " : "", command->words != NULL ? command->words : "",
            command->summary);
    if (command->details != NULL) {
        fputc('\n', out);
        write_paragraphs(command->details, out);
    }
    if (command->status != NULL)
        fprintf(out, "\nExit status: 0 ok, 1 %s, 2 failed.\n", command->status);
    fprintf(out, "\nOptions:\n");
    tl_options_print(table, out);
}

/* ---- the manual page ---- */

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
    for (const struct tl_option *option = table; option->value.path != NULL; option++) {
        char name[80];
        bool has_value = option->argument != NULL;
        int length =
            option->letter != '\0' ? snprintf(name, sizeof(name), "`-%c`, ", option->letter) : 0;
        length +=
            snprintf(name + length, sizeof(name) - (size_t)length, "`--%s`%s%s", option->value.path,
                     has_value ? " " : "", has_value ? option->argument : "");
        fputs(".TP\n", stdout);
        write_line(name, (size_t)length);
        write_line(option->value.help, strlen(option->value.help));
    }
}

static void write_command(const struct tl_ctl_command *command)
{
    char usage[256];
    snprintf(usage, sizeof(usage), "`%s` [options]%s%s", command->name,
             command->words != NULL ? " " : "", command->words != NULL ? command->words : "");
    fputs(".SS ", stdout);
    write_line(usage, strlen(usage));
    write_text(command->summary);
    if (command->details != NULL) {
        fputs(".PP\n", stdout);
        write_text(command->details);
    }
    if (command->status != NULL)
        printf(".PP\nExit status 1: %s.\n", command->status);
    write_options(command);
}

static void write_rest(void)
{
    fputs(".SH EXIT STATUS\n", stdout);
    for (int status = 0; status < TL_EXITS; status++) {
        printf(".TP\n.B %d\n", status);
        write_text(meaning_of(status));
    }
    fputs(".SH ENVIRONMENT\n"
          ".TP\n.B TELLERLINE_TOKEN\nThe token for\n.BR \\-\\-server .\n"
          ".TP\n.B TELLERLINE_CONFIG\nThe configuration file, unless\n.B \\-\\-config\nnames one.\n"
          ".TP\n.BR TELLERLINE_... \nSettings, in place of those of the file.\n"
          ".TP\n.B NO_COLOR\nIf it is set, nothing is coloured.\n"
          ".TP\n.B TZ\nThe zone of the times that are shown. With\n.B \\-o json\nthey are in UTC.\n"
          ".SH FILES\n.TP\n.I /etc/tellerline/tellerline.yaml\nThe configuration of the Debian "
          "package.\n"
          ".TP\n.I /etc/default/tellerline\nThe environment of its services, which only root "
          "reads.\n"
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

/* ---- operands ---- */

/* What stands for a name such as "QUEUE". */
static enum tl_operand operand_of(const char *name, size_t length)
{
    static const struct {
        const char *name;
        enum tl_operand operand;
    } rows[] = {
        {"QUEUE", TL_OPERAND_QUEUE},
        {"SETTING=VALUE", TL_OPERAND_ASSIGNMENT},
        {"FILE", TL_OPERAND_FILE},
        {"DIR", TL_OPERAND_FOLDER},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (strlen(rows[i].name) == length && memcmp(rows[i].name, name, length) == 0)
            return rows[i].operand;
    }
    return TL_OPERAND_OTHER;
}

enum tl_operand tl_operand_at(const char *words, int i)
{
    size_t length;
    const char *name = tl_operand_name(words, i, &length);
    return name != NULL ? operand_of(name, length) : TL_OPERAND_NONE;
}

/* ---- completions ---- */

static bool begins_with(const char *text, const char *typed)
{
    return strncmp(text, typed, strlen(typed)) == 0;
}

/* The first words of all names, each once; or the second words of those with this first one. */
static void list_words(const char *first, const char *typed)
{
    size_t n;
    const struct tl_ctl_command *commands = tl_ctl_commands(&n);
    if (first == NULL && begins_with("help", typed))
        printf("help\tShow the commands, or what one does\n");
    for (size_t i = 0; i < n; i++) {
        const char *name = commands[i].name;
        int length = (int)strcspn(name, " ");
        bool repeated = i > 0 && strncmp(name, commands[i - 1].name, (size_t)length + 1) == 0;
        const char *summary =
            name[length] == ' ' ? tl_ctl_group_title(commands[i].group) : commands[i].summary;
        if (commands[i].hidden || (first != NULL && !is_of(&commands[i], first)))
            continue;
        if (first == NULL && !repeated && begins_with(name, typed))
            printf("%.*s\t%s\n", length, name, summary);
        else if (first != NULL && begins_with(name + length + 1, typed))
            printf("%s\t%s\n", name + length + 1, commands[i].summary);
    }
}

/* ---- what follows it ---- */

/* The queues of the store that these options name. No store, no candidates. */
static void list_queues(struct tl_ctl_options *options, const char *typed)
{
    struct tl_error err = {0};
    struct tl_ctl_session session;
    char(*names)[TL_QUEUE_NAME_MAX + 1] = NULL;
    size_t n = 0;
    (void)tl_ctl_options_locate(options, &err); /* another system may be within reach */
    if (options->server != NULL || !tl_ctl_session_open(&session, options, &err))
        return;
    struct tl_redis *redis = tl_store_reach(session.store, NULL, &err);
    if (redis != NULL && tl_queue_list(redis, session.config->redis.key_prefix, &names, &n, &err)) {
        for (size_t i = 0; i < n; i++) {
            if (begins_with(names[i], typed))
                printf("%s\n", names[i]);
        }
        free(names);
    }
    tl_ctl_session_close(&session);
}

/* The names of the settings with "="; after that, the values of a choice. */
static void list_assignments(const char *typed)
{
    size_t n;
    const struct tl_setting *rows = tl_queue_table(&n);
    for (size_t i = 0; i < n; i++) {
        char name[TL_SETTING_PATH_MAX + 1];
        int length = snprintf(name, sizeof(name), "%s=", rows[i].path);
        if (strchr(typed, '=') == NULL && begins_with(name, typed))
            printf("%s\n", name);
        if (!begins_with(typed, name))
            continue;
        for (size_t k = 0; rows[i].names != NULL && rows[i].names[k] != NULL; k++) {
            if (begins_with(rows[i].names[k], typed + length))
                printf("%s%s\n", name, rows[i].names[k]);
        }
        for (int k = 0; k < 2 && rows[i].type == TL_SETTING_BOOL; k++) {
            static const char *const values[] = {"true", "false"};
            if (begins_with(values[k], typed + length))
                printf("%s%s\n", name, values[k]);
        }
    }
}

static void list_operand(enum tl_operand operand, struct tl_ctl_options *options, const char *typed)
{
    switch (operand) {
    case TL_OPERAND_QUEUE:
        list_queues(options, typed);
        break;
    case TL_OPERAND_ASSIGNMENT:
        list_assignments(typed);
        break;
    case TL_OPERAND_FILE:
        puts(":files");
        break;
    case TL_OPERAND_FOLDER:
        puts(":folders");
        break;
    case TL_OPERAND_NONE:
    case TL_OPERAND_OTHER:
        break;
    }
}

static void list_options(const struct tl_option table[], const char *typed)
{
    for (const struct tl_option *option = table; option->value.path != NULL; option++) {
        if (begins_with(option->value.path, typed + 2))
            printf("--%s\t%s\n", option->value.path, option->value.help);
    }
}

/* The option of which this word wants a value; NULL: of none. */
static const struct tl_option *find_open(const struct tl_option table[], const char *word)
{
    for (const struct tl_option *option = table; option->value.path != NULL; option++) {
        bool is_letter =
            word[0] == '-' && word[1] == option->letter && word[1] != '\0' && word[2] == '\0';
        if (option->argument != NULL && (is_letter || (strncmp(word, "--", 2) == 0 &&
                                                       strcmp(word + 2, option->value.path) == 0)))
            return option;
    }
    return NULL;
}

/* The words after the command's name (at words[0]), the last as far as it is typed. */
static void complete_rest(const struct tl_ctl_command *command, int n, char **words)
{
    struct tl_option table[TL_OPTIONS_MAX + 1];
    struct tl_ctl_options unused, options;
    struct tl_error err = {0};
    char *typed = words[n - 1];
    tl_ctl_options_rows(command, &unused, table);
    const struct tl_option *open = n > 2 ? find_open(table, words[n - 2]) : NULL;
    int complete = open != NULL ? n - 2 : n - 1;
    if (!tl_ctl_options_read(command, complete, words, &options, &err))
        return;
    if (open != NULL && open->value.names != NULL) {
        for (size_t i = 0; open->value.names[i] != NULL; i++)
            printf("%s\n", open->value.names[i]);
    } else if (open != NULL) {
        bool is_queue = strcmp(open->value.path, "queue") == 0;
        list_operand(is_queue ? TL_OPERAND_QUEUE
                              : operand_of(open->argument, strlen(open->argument)),
                     &options, typed);
    } else if (typed[0] == '-') {
        list_options(table, typed[1] == '-' ? typed : "--");
    } else {
        list_operand(tl_operand_at(command->words, options.n_words), &options, typed);
    }
}

void tl_ctl_complete(int n, char **words)
{
    int used;
    if (n > 1 && strcmp(words[0], "help") == 0) { /* as if it were not there, but no further */
        words++;
        n = n < 4 ? n - 1 : 0;
        if (n == 2 && tl_ctl_command_find(1, words, &used) != NULL)
            n = 0;
    }
    if (n == 0)
        return;
    const struct tl_ctl_command *command = tl_ctl_command_find(n - 1, words, &used);
    if (n == 1)
        list_words(NULL, words[0]);
    else if (command != NULL)
        complete_rest(command, n - used + 1, words + used - 1);
    else if (n == 2)
        list_words(words[0], words[1]);
}
