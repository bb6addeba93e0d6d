/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "common/base/text.h"
#include "common/config/words.h"

#include "ctl/commands.h"
#include "ctl/help.h"
#include "ctl/options.h"

enum { MEANT_MAX = 40 };

/* The command that was probably meant: its second word after a known first one. "": none is close.
 */
static const char *closest(const char *first, const char *word, char best[MEANT_MAX])
{
    size_t n, steps = SIZE_MAX;
    const struct tl_ctl_command *commands = tl_ctl_commands(&n);
    best[0] = '\0';
    for (size_t i = 0; i < n; i++) {
        const char *names[] = {commands[i].name, first == NULL ? commands[i].other : NULL};
        for (size_t k = 0; k < 2 && names[k] != NULL && !commands[i].hidden; k++) {
            char name[MEANT_MAX];
            const char *rest = strchr(names[k], ' ');
            size_t length = rest != NULL ? (size_t)(rest - names[k]) : strlen(names[k]);
            bool is_in = first != NULL && rest != NULL && strlen(first) == length &&
                         strncmp(first, names[k], length) == 0;
            if (first != NULL && !is_in)
                continue;
            snprintf(name, sizeof(name), "%.*s", first != NULL ? MEANT_MAX : (int)length,
                     first != NULL ? rest + 1 : names[k]);
            if (tl_spelling_closer(word, name, &steps))
                snprintf(best, MEANT_MAX, "%s", name);
        }
    }
    return best;
}

/* The words name no command: says what there is. */
static int fail_unknown(int n_words, char *const *words)
{
    char quoted[80], meant[MEANT_MAX];
    if (tl_ctl_command_begins(words[0]) && n_words < 2) {
        tl_ctl_help_list(words[0], stderr);
        return TL_EXIT_FAILED;
    }
    bool known = tl_ctl_command_begins(words[0]);
    tl_quote(known ? words[1] : words[0], quoted, sizeof(quoted));
    closest(known ? words[0] : NULL, known ? words[1] : words[0], meant);
    fprintf(stderr,
            "tellerline: no such command: %s%s%s%s%s%s; `tellerline %s%s--help` lists them\n",
            known ? words[0] : "", known ? " " : "", quoted,
            meant[0] != '\0' ? "; did you mean \"" : "", meant, meant[0] != '\0' ? "\"?" : "",
            known ? words[0] : "", known ? " " : "");
    return TL_EXIT_FAILED;
}

static bool is_help(const char *word)
{
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
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
    if (is_help(argv[1]) || strcmp(argv[1], "help") == 0) {
        tl_ctl_help_list(NULL, stdout);
        return TL_EXIT_OK;
    }
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
    if (argc > 2 && is_help(argv[2]) && tl_ctl_command_begins(argv[1])) {
        tl_ctl_help_list(argv[1], stdout);
        return TL_EXIT_OK;
    }
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
        return calls && !is_text(&options) ? TL_EXIT_PROBLEM : command->run(&options);
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
