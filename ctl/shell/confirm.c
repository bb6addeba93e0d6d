/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "ctl/shell/confirm.h"

enum { ANSWER_MAX = 256 };

static bool is_yes(const char *answer, const char *word)
{
    return word != NULL ? strcmp(answer, word) == 0
                        : strcasecmp(answer, "y") == 0 || strcasecmp(answer, "yes") == 0;
}

int tl_ctl_confirm(const struct tl_ctl_options *options, const char *what, const char *word)
{
    char answer[ANSWER_MAX] = "";
    if (options->yes)
        return TL_EXIT_OK;
    if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO)) {
        fprintf(stderr,
                "tellerline: %s There is no terminal to ask on: say --yes. Nothing was changed.\n",
                what);
        return TL_EXIT_UNCONFIRMED;
    }
    if (word != NULL)
        fprintf(stderr, "%s Type %s to go on: ", what, word);
    else
        fprintf(stderr, "%s Go on? [y/N] ", what);
    fflush(stderr);
    if (fgets(answer, sizeof(answer), stdin) == NULL)
        fputc('\n', stderr);
    answer[strcspn(answer, "\n")] = '\0';
    if (is_yes(answer, word))
        return TL_EXIT_OK;
    fputs("Nothing was changed.\n", stderr);
    return TL_EXIT_UNCONFIRMED;
}
