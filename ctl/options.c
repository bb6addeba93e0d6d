#include <string.h>

#include "common/base/quote.h"
#include "common/base/units.h"
#include "common/role/options.h"

#include "ctl/options.h"

/* One option: how it is written, what it stores. */
struct option_row {
    const char *name;
    const char *value; /* name of its value for the help, NULL when it takes none */
    unsigned bit;
    const char *help;
};

static const struct option_row rows[] = {
    {"--config", "FILE", TL_OPTION_CONFIG,
     "the configuration file; without it, defaults and environment"},
    {"--redis", "URL", TL_OPTION_REDIS, "the Redis to look at, instead of the configured one"},
    {"--data", "DIR", TL_OPTION_DATA, "the data folder of `tellerline up` (default: data)"},
    {"--queue", "NAME", TL_OPTION_QUEUE, "only this queue"},
    {"--json", NULL, TL_OPTION_JSON, "write JSON"},
    {"--interval", "TIME", TL_OPTION_INTERVAL,
     "time between two looks: 500ms, 1s, ... (default: 1s)"},
    {"--count", "N", TL_OPTION_COUNT, "end after N looks"},
    {"--processes", "N", TL_OPTION_PROCESSES, "worker processes, instead of the configured number"},
    {"--help", NULL, 0, "this text"},
};

enum { N_ROWS = sizeof(rows) / sizeof(rows[0]), INTERVAL_LEAST_MS = 100, PROCESSES_MOST = 256 };

/* The option that `argument` names, as far as the command takes it; *value gets what follows '='.
 */
static const struct option_row *find_row(const struct tl_ctl_command *command, const char *argument,
                                         const char **value)
{
    if (strcmp(argument, "-h") == 0)
        argument = "--help";
    const char *equals = strchr(argument, '=');
    size_t length = equals != NULL ? (size_t)(equals - argument) : strlen(argument);
    *value = equals != NULL ? equals + 1 : NULL;
    for (size_t i = 0; i < N_ROWS; i++) {
        bool taken = rows[i].bit == 0 || (command->options & rows[i].bit) != 0;
        if (taken && strlen(rows[i].name) == length && memcmp(rows[i].name, argument, length) == 0)
            return &rows[i];
    }
    return NULL;
}

static bool store_number(const struct option_row *row, const char *value, uint64_t most,
                         uint64_t *out, struct tl_error *err)
{
    if (!tl_number_parse(value, out, err))
        return tl_error_prefix(err, "%s", row->name);
    if (*out == 0 || *out > most)
        return tl_error_set(err, TL_ERR_INVALID, "%s: must be 1 to %llu", row->name,
                            (unsigned long long)most);
    return true;
}

static bool store_interval(const struct option_row *row, const char *value, int64_t *out,
                           struct tl_error *err)
{
    if (!tl_duration_parse(value, out, err))
        return tl_error_prefix(err, "%s", row->name);
    if (*out < INTERVAL_LEAST_MS)
        return tl_error_set(err, TL_ERR_INVALID, "%s: must be at least %d ms", row->name,
                            INTERVAL_LEAST_MS);
    return true;
}

static bool store_value(const struct option_row *row, const char *value,
                        struct tl_ctl_options *options, struct tl_error *err)
{
    switch (row->bit) {
    case TL_OPTION_CONFIG:
        options->config = value;
        return true;
    case TL_OPTION_REDIS:
        options->redis = value;
        return true;
    case TL_OPTION_DATA:
        options->data = value;
        return true;
    case TL_OPTION_QUEUE:
        options->queue = value;
        return true;
    case TL_OPTION_JSON:
        options->json = true;
        return true;
    case TL_OPTION_INTERVAL:
        return store_interval(row, value, &options->interval_ms, err);
    case TL_OPTION_COUNT:
        return store_number(row, value, UINT32_MAX, &options->count, err);
    case TL_OPTION_PROCESSES:
        return store_number(row, value, PROCESSES_MOST, &options->processes, err);
    default:
        options->help = true;
        return true;
    }
}

/* Takes the option at argv[*i], and its value. */
static bool take_option(const struct tl_ctl_command *command, int argc, char **argv, int *i,
                        struct tl_ctl_options *options, struct tl_error *err)
{
    const char *value;
    char quoted[80];
    const struct option_row *row = find_row(command, argv[*i], &value);
    if (row == NULL) {
        tl_quote(argv[*i], quoted, sizeof(quoted));
        return tl_error_set(err, TL_ERR_INVALID, "no such option: %s; see `tellerline %s --help`",
                            quoted, command->name);
    }
    if (row->value == NULL && value != NULL)
        return tl_error_set(err, TL_ERR_INVALID, "%s takes no value", row->name);
    if (row->value != NULL && value == NULL) {
        if (*i + 1 >= argc)
            return tl_error_set(err, TL_ERR_INVALID, "%s needs a value: %s", row->name, row->value);
        value = argv[++*i];
    }
    return store_value(row, value, options, err);
}

bool tl_ctl_options_parse(const struct tl_ctl_command *command, int argc, char **argv,
                          struct tl_ctl_options *options, struct tl_error *err)
{
    *options = (struct tl_ctl_options){.data = "data", .interval_ms = 1000, .words = argv};
    bool only_words = false;
    for (int i = 0; i < argc; i++) {
        if (!only_words && strcmp(argv[i], "--") == 0) {
            only_words = true;
        } else if (!only_words && argv[i][0] == '-' && argv[i][1] != '\0') {
            if (!take_option(command, argc, argv, &i, options, err))
                return false;
        } else {
            /* Words never overtake what is still to be read: n_words <= i. */
            argv[options->n_words++] = argv[i];
        }
    }
    options->config = tl_options_config_path(options->config);
    if (options->help)
        return true;
    if (options->n_words < command->min_words || options->n_words > command->max_words)
        return tl_error_set(err, TL_ERR_INVALID, "usage: tellerline %s [options]%s%s",
                            command->name, command->words[0] != '\0' ? " " : "", command->words);
    return true;
}

void tl_ctl_options_help(const struct tl_ctl_command *command, FILE *out)
{
    fprintf(out, "Usage: tellerline %s [options]%s%s\n\n%s\n", command->name,
            command->words[0] != '\0' ? " " : "", command->words, command->summary);
    if (command->details[0] != '\0')
        fprintf(out, "\n%s\n", command->details);
    fprintf(out, "\nOptions:\n");
    for (size_t i = 0; i < N_ROWS; i++) {
        if (rows[i].bit != 0 && (command->options & rows[i].bit) == 0)
            continue;
        char left[40];
        snprintf(left, sizeof(left), "%s %s", rows[i].name,
                 rows[i].value != NULL ? rows[i].value : "");
        fprintf(out, "  %-18s %s\n", left, rows[i].help);
    }
}
