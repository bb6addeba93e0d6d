/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "common/base/text.h"
#include "common/config/spelling.h"

#include "ctl/calls/calls.h"
#include "ctl/commands.h"
#include "ctl/help.h"

/* The command that was probably meant: with this first word, if that is one; else by its first
 * word, or by its second alone. "": none is close. Borrowed until the next call. */
static const char *closest(const char *first, const char *word)
{
    static char best[40];
    size_t n, steps = SIZE_MAX;
    const struct tl_ctl_command *commands = tl_ctl_commands(&n);
    best[0] = '\0';
    for (size_t i = 0; i < n; i++) {
        char name[40];
        int length = (int)strcspn(commands[i].name, " ");
        const char *second = commands[i].name[length] != '\0' ? commands[i].name + length + 1 : "";
        bool is_of = first == NULL || (strncmp(first, commands[i].name, (size_t)length) == 0 &&
                                       first[length] == '\0');
        snprintf(name, sizeof(name), "%.*s", length, commands[i].name);
        if (commands[i].hidden || !is_of)
            continue;
        if (first == NULL && tl_spelling_closer(word, name, &steps))
            snprintf(best, sizeof(best), "%s", name);
        if (tl_spelling_closer(word, second, &steps))
            snprintf(best, sizeof(best), "%s", commands[i].name);
    }
    return best;
}

/* The words name no command: says what there is. */
static int fail_unknown(int n_words, char *const *words)
{
    char quoted[80];
    bool known = tl_ctl_command_begins(words[0]);
    if (known && n_words < 2) {
        tl_ctl_help_list(words[0], stderr);
        return TL_EXIT_FAILED;
    }
    tl_quote(known ? words[1] : words[0], quoted, sizeof(quoted));
    const char *meant = closest(known ? words[0] : NULL, known ? words[1] : words[0]);
    fprintf(stderr, "tellerline: no such command: %s%s%s%s%s%s; `tellerline help%s%s` lists them\n",
            known ? words[0] : "", known ? " " : "", quoted,
            meant[0] != '\0' ? "; did you mean \"" : "", meant, meant[0] != '\0' ? "\"?" : "",
            known ? " " : "", known ? words[0] : "");
    return TL_EXIT_FAILED;
}

static bool is_help(const char *word)
{
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

/* `tellerline help`, of all commands, of those with this first word, or of one. */
static int help(int n_words, char *const *words)
{
    int used;
    const struct tl_ctl_command *command = tl_ctl_command_find(n_words, words, &used);
    if (n_words == 0 || (n_words == 1 && tl_ctl_command_begins(words[0])))
        tl_ctl_help_list(n_words == 0 ? NULL : words[0], stdout);
    else if (command != NULL && used == n_words)
        tl_ctl_help_command(command, stdout);
    else
        return fail_unknown(n_words, words);
    return TL_EXIT_OK;
}

/* What is asked travels as JSON, which is UTF-8. */
static bool is_text(const struct tl_ctl_options *options)
{
    const char *broken = NULL;
    for (int i = 0; i < options->n_words && broken == NULL; i++)
        broken = tl_utf8_valid(options->words[i]) ? NULL : options->words[i];
    if (broken == NULL && options->queue != NULL && !tl_utf8_valid(options->queue))
        broken = options->queue;
    if (broken == NULL)
        return true;
    char quoted[80];
    tl_quote(broken, quoted, sizeof(quoted));
    fprintf(stderr, "tellerline: %s is not text in UTF-8\n", quoted);
    return false;
}

static int run(int argc, char **argv)
{
    if (argc < 2) {
        tl_ctl_help_list(NULL, stderr);
        return TL_EXIT_FAILED;
    }
    if (strcmp(argv[1], "help") == 0)
        return help(argc - 2, argv + 2);
    if (is_help(argv[1]))
        return help(0, NULL);
    if (strcmp(argv[1], "--version") == 0) {
        printf("tellerline %s\n", TELLERLINE_VERSION);
        return TL_EXIT_OK;
    }
    /* For the packages and the shells: no commands of the table. */
    if (strcmp(argv[1], "manual") == 0) {
        tl_ctl_manual();
        return TL_EXIT_OK;
    }
    if (argc > 2 && strcmp(argv[1], "complete") == 0 && strcmp(argv[2], "--") == 0) {
        tl_ctl_complete(argc - 3, argv + 3);
        return TL_EXIT_OK;
    }
    if (argc > 2 && is_help(argv[2]) && tl_ctl_command_begins(argv[1]))
        return help(1, argv + 1);
    int used;
    const struct tl_ctl_command *command = tl_ctl_command_find(argc - 1, argv + 1, &used);
    if (command == NULL)
        return fail_unknown(argc - 1, argv + 1);
    struct tl_ctl_options options;
    struct tl_error err = {0};
    if (!tl_ctl_options_parse(command, argc - used, argv + used, &options, &err))
        return tl_ctl_fail(TL_EXIT_FAILED, &err);
    if (!options.help) {
        bool calls = (command->options & TL_OPTION_SERVER) != 0;
        return calls && !is_text(&options) ? TL_EXIT_PROBLEM
               : command->run != NULL      ? command->run(&options)
                                           : tl_ctl_run(&options);
    }
    tl_ctl_help_command(command, stdout);
    return TL_EXIT_OK;
}

/* For jansson: what it makes is never NULL for want of memory. */
static void *allocate(size_t size)
{
    return tl_xalloc(1, size);
}

int main(int argc, char **argv)
{
    json_set_alloc_funcs(allocate, free);
    int status = run(argc, argv);
    if (fflush(stdout) == 0 && ferror(stdout) == 0)
        return status;
    return tl_ctl_refuse(TL_EXIT_FAILED, "standard output could not be written");
}
