/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/config/queue_table.h"
#include "common/store/queue.h"

#include "ctl/commands.h"
#include "ctl/complete.h"
#include "ctl/operands.h"
#include "ctl/options.h"
#include "ctl/shell/session.h"

/* What the shell knows better. */
#define ANSWER_FILES   ":files"
#define ANSWER_FOLDERS ":folders"

static bool begins_with(const char *text, const char *typed)
{
    return strncmp(text, typed, strlen(typed)) == 0;
}

/* ---- the name of the command ---- */

/* The first words of all names, each once; and the other spellings that what is typed leads to. */
static void list_first_words(const char *typed)
{
    size_t n;
    const struct tl_ctl_command *commands = tl_ctl_commands(&n);
    for (size_t i = 0; i < n; i++) {
        const char *name = commands[i].name;
        int length = (int)strcspn(name, " ");
        bool repeated = i > 0 && strncmp(name, commands[i - 1].name, (size_t)length + 1) == 0;
        if (commands[i].hidden || repeated || !begins_with(name, typed))
            continue;
        if (name[length] == ' ')
            printf("%.*s\t%s\n", length, name, tl_ctl_group_title(commands[i].group));
        else
            printf("%s\t%s\n", name, commands[i].summary);
    }
    for (size_t i = 0; typed[0] != '\0' && i < n; i++) {
        if (commands[i].other != NULL && begins_with(commands[i].other, typed))
            printf("%s\t%s\n", commands[i].other, commands[i].summary);
    }
}

static void list_second_words(const char *first, const char *typed)
{
    size_t n, length = strlen(first);
    const struct tl_ctl_command *commands = tl_ctl_commands(&n);
    for (size_t i = 0; i < n; i++) {
        const char *name = commands[i].name;
        if (!commands[i].hidden && begins_with(name, first) && name[length] == ' ' &&
            begins_with(name + length + 1, typed))
            printf("%s\t%s\n", name + length + 1, commands[i].summary);
    }
}

/* ---- what follows it ---- */

/* The queues of the store that these options name. No store, no candidates. */
static void list_queues(const struct tl_ctl_options *options, const char *typed)
{
    struct tl_error err = {0};
    struct tl_ctl_session session;
    char(*names)[TL_QUEUE_NAME_MAX + 1] = NULL;
    size_t n = 0;
    if (options->server != NULL || !tl_ctl_session_open(&session, options, &err))
        return;
    struct tl_redis *redis = tl_ctl_session_redis(&session, NULL, &err);
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

static void list_operand(enum tl_operand operand, const struct tl_ctl_options *options,
                         const char *typed)
{
    switch (operand) {
    case TL_OPERAND_QUEUE:
        list_queues(options, typed);
        break;
    case TL_OPERAND_ASSIGNMENT:
        list_assignments(typed);
        break;
    case TL_OPERAND_FILE:
        puts(ANSWER_FILES);
        break;
    case TL_OPERAND_FOLDER:
        puts(ANSWER_FOLDERS);
        break;
    case TL_OPERAND_FORMAT:
        puts("csv\njsonl");
        break;
    case TL_OPERAND_NONE:
    case TL_OPERAND_OTHER:
        break;
    }
}

static void list_options(const struct tl_option table[], const char *typed)
{
    for (const struct tl_option *option = table; option->name != NULL; option++) {
        if (begins_with(option->name, typed + 2))
            printf("--%s\t%s\n", option->name, option->help);
    }
}

/* The option of which this word wants a value; NULL: of none. */
static const struct tl_option *find_open(const struct tl_option table[], const char *word)
{
    for (const struct tl_option *option = table; option->name != NULL; option++) {
        if (option->argument != NULL && strncmp(word, "--", 2) == 0 &&
            strcmp(word + 2, option->name) == 0)
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
    if (open != NULL) {
        bool is_queue = strcmp(open->name, "queue") == 0;
        list_operand(is_queue ? TL_OPERAND_QUEUE
                              : tl_operand_of(open->argument, strlen(open->argument)),
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
    if (n == 0)
        return;
    const struct tl_ctl_command *command = tl_ctl_command_find(n - 1, words, &used);
    if (n == 1)
        list_first_words(words[0]);
    else if (command != NULL)
        complete_rest(command, n - used + 1, words + used - 1);
    else if (n == 2)
        list_second_words(words[0], words[1]);
}
