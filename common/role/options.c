#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/quote.h"
#include "common/base/units.h"
#include "common/role/options.h"

enum { FIRST_VALUE = 256, QUOTED_SIZE = 96 }; /* values of long options, beyond all letters */

/* What getopt_long refused: `found` is '?' or ':'. */
static int refuse(const struct tl_option table[], int found, const char *word, struct tl_error *err)
{
    const struct tl_option *option =
        optopt >= FIRST_VALUE ? &table[optopt - FIRST_VALUE] : NULL; /* else a letter, or 0 */
    if (option != NULL && found == ':') {
        tl_error_set(err, TL_ERR_INVALID, "--%s needs a value: %s", option->name, option->argument);
    } else if (option != NULL) {
        tl_error_set(err, TL_ERR_INVALID, "--%s takes no value", option->name);
    } else {
        /* getopt may still be inside a word of letters: -xyz. */
        const char letter[] = {'-', (char)optopt, '\0'};
        char quoted[QUOTED_SIZE];
        tl_quote(optopt > 0 ? letter : word, quoted, sizeof(quoted));
        tl_error_set(err, TL_ERR_INVALID, "no such option: %s; --help lists the options", quoted);
    }
    return -1;
}

int tl_options_read(const struct tl_option table[], int argc, char **argv, struct tl_error *err)
{
    struct option long_options[TL_OPTIONS_MAX + 1] = {0};
    int help = 0;
    for (size_t i = 0; table[i].name != NULL; i++) {
        if (i == TL_OPTIONS_MAX)
            abort(); /* the table outgrew TL_OPTIONS_MAX */
        long_options[i] =
            (struct option){.name = table[i].name,
                            .has_arg = table[i].argument != NULL ? required_argument : no_argument,
                            .val = FIRST_VALUE + (int)i};
        if (strcmp(table[i].name, "help") == 0)
            help = long_options[i].val;
    }
    opterr = 0;
    optind = 0; /* glibc: start from the beginning */
    for (;;) {
        int found = getopt_long(argc, argv, help != 0 ? ":h" : ":", long_options, NULL);
        if (found == -1)
            return optind;
        if (found == '?' || found == ':')
            return refuse(table, found, argv[optind - 1], err);
        const struct tl_option *option = &table[(found == 'h' ? help : found) - FIRST_VALUE];
        if (!option->apply(option->context, optarg, err)) {
            tl_error_prefix(err, "--%s", option->name);
            return -1;
        }
        if (option->last)
            return optind;
    }
}

void tl_options_print(const struct tl_option table[], FILE *out)
{
    for (const struct tl_option *option = table; option->name != NULL; option++) {
        char left[64];
        snprintf(left, sizeof(left), "--%s%s%s", option->name, option->argument != NULL ? " " : "",
                 option->argument != NULL ? option->argument : "");
        fprintf(out, "  %-20s %s\n", left, option->help);
    }
}

bool tl_option_text(void *context, const char *value, struct tl_error *err)
{
    (void)err;
    *(const char **)context = value;
    return true;
}

bool tl_option_flag(void *context, const char *value, struct tl_error *err)
{
    (void)value;
    (void)err;
    *(bool *)context = true;
    return true;
}

bool tl_option_number(const char *value, uint64_t most, uint64_t *number, struct tl_error *err)
{
    if (!tl_number_parse(value, number, err))
        return false;
    return (*number >= 1 && *number <= most) ||
           tl_error_set(err, TL_ERR_INVALID, "must be 1 to %llu", (unsigned long long)most);
}
