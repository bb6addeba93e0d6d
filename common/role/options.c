/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "common/base/text.h"
#include "common/config/value.h"
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
    for (const struct tl_option *option = table; option->value.path != NULL; option++) {
        const char *path = option->value.path;
        if (word[1] != '-' ? option->letter == word[1]
                           : strncmp(path, name, length) == 0 && path[length] == '\0')
            return option;
    }
    return NULL;
}

static bool set(const struct tl_option *option, const char *value, struct tl_error *err)
{
    const struct tl_setting *setting = &option->value;
    void *field = (char *)option->base + setting->offset;
    if (option->apply != NULL)
        return option->apply(field, value, err);
    if (option->argument == NULL)
        *(bool *)field = true;
    else if (setting->type != TL_SETTING_STRING)
        return tl_setting_set(setting, option->base, value, TL_FORM_FILE, err);
    else if (setting->check != NULL && !setting->check(value, err))
        return false;
    else
        *(const char **)field = value;
    return true;
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
    const char *name = option->value.path;
    if (option->argument == NULL && value != NULL)
        return tl_error_set(err, TL_ERR_INVALID, "--%s takes no value", name);
    if (option->argument != NULL && value == NULL) {
        if (n < 2)
            return tl_error_set(err, TL_ERR_INVALID, "--%s needs a value: %s", name,
                                option->argument);
        value = words[1];
        used = 2;
    }
    return set(option, value, err) ? used : tl_error_prefix(err, "--%s", name);
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

void tl_options_default(const struct tl_option table[])
{
    for (const struct tl_option *option = table; option->value.path != NULL; option++) {
        const char *fallback = option->value.fallback;
        if (fallback != NULL && !set(option, fallback, NULL))
            abort(); /* the table is wrong */
    }
}

void tl_options_print(const struct tl_option table[], FILE *out)
{
    for (const struct tl_option *option = table; option->value.path != NULL; option++) {
        char left[64];
        const char *argument = option->argument != NULL ? option->argument : "";
        int n = option->letter != '\0' ? snprintf(left, sizeof(left), "-%c, ", option->letter) : 0;
        snprintf(left + n, sizeof(left) - (size_t)n, "--%s%s%s", option->value.path,
                 *argument != '\0' ? " " : "", argument);
        fprintf(out, "  %-20s %s\n", left, option->value.help);
    }
}
