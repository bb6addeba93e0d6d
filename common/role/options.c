/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "common/base/text.h"
#include "common/base/units.h"
#include "common/role/options.h"

enum { QUOTED_SIZE = 96 };

/* "--name", "--name=VALUE", or a letter: "-h". A longer word with one hyphen is an operand, as ids
 * may begin with one. */
static bool is_option(const char *word)
{
    return word[0] == '-' && word[1] != '\0' && (word[1] == '-' || word[2] == '\0');
}

static const struct tl_option *find(const struct tl_option table[], const char *word)
{
    const char *name = word + 2; /* "" behind a letter */
    size_t length = strcspn(name, "=");
    for (const struct tl_option *option = table; option->name != NULL; option++) {
        if (word[1] != '-'
                ? option->letter == word[1]
                : strncmp(option->name, name, length) == 0 && option->name[length] == '\0')
            return option;
    }
    return NULL;
}

/* Applies the option at words[0], whose value may be words[1]. Returns how many of them it is, or 0
 * with err. */
static int apply(const struct tl_option *option, int n, char *const *words, struct tl_error *err)
{
    const char *equals = words[0][1] == '-' ? strchr(words[0], '=') : NULL;
    const char *value = equals != NULL ? equals + 1 : NULL;
    int used = 1;
    if (option == NULL) {
        char quoted[QUOTED_SIZE];
        tl_quote(words[0], quoted, sizeof(quoted));
        return tl_error_set(err, TL_ERR_INVALID, "no such option: %s; --help lists the options",
                            quoted);
    }
    if (option->argument == NULL && value != NULL)
        return tl_error_set(err, TL_ERR_INVALID, "--%s takes no value", option->name);
    if (option->argument != NULL && value == NULL) {
        if (n < 2)
            return tl_error_set(err, TL_ERR_INVALID, "--%s needs a value: %s", option->name,
                                option->argument);
        value = words[1];
        used = 2;
    }
    return option->apply(option->context, value, err) ? used
                                                      : tl_error_prefix(err, "--%s", option->name);
}

int tl_options_read(const struct tl_option table[], int argc, char **argv, struct tl_error *err)
{
    int first = 1; /* the operands so far are from here to the word that is looked at */
    bool more = true;
    for (int at = 1; more && at < argc;) {
        bool ends = strcmp(argv[at], "--") == 0;
        if (!ends && !is_option(argv[at])) {
            at++;
            continue;
        }
        const struct tl_option *option = ends ? NULL : find(table, argv[at]);
        int used = ends ? 1 : apply(option, argc - at, argv + at, err);
        if (used == 0)
            return -1;
        for (int end = at + used; at < end; at++) { /* before the operands */
            char *word = argv[at];
            memmove(&argv[first + 1], &argv[first], (size_t)(at - first) * sizeof(*argv));
            argv[first++] = word;
        }
        more = !ends && !option->last;
    }
    return first;
}

void tl_options_print(const struct tl_option table[], FILE *out)
{
    for (const struct tl_option *option = table; option->name != NULL; option++) {
        char left[64];
        int length =
            option->letter != '\0' ? snprintf(left, sizeof(left), "-%c, ", option->letter) : 0;
        snprintf(left + length, sizeof(left) - (size_t)length, "--%s%s%s", option->name,
                 option->argument != NULL ? " " : "",
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
