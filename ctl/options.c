/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/units.h"
#include "common/role/program.h"

#include "ctl/options.h"

#define INSTALLED_CONFIG "/etc/tellerline/tellerline.yaml"

enum {
    INTERVAL_LEAST_MS = 100,
    PROCESSES_MOST = 256,
    SECOND_MS = 1000,
};
#define DAY_MS INT64_C(86400000)

static bool apply_interval(void *context, const char *value, struct tl_error *err)
{
    int64_t *interval_ms = context;
    if (!tl_duration_parse(value, interval_ms, err))
        return false;
    return *interval_ms >= INTERVAL_LEAST_MS ||
           tl_error_set(err, TL_ERR_INVALID, "must be at least %d ms", INTERVAL_LEAST_MS);
}

static bool apply_wait(void *context, const char *value, struct tl_error *err)
{
    return tl_option_time(value, SECOND_MS, DAY_MS, context, err);
}

static bool apply_for(void *context, const char *value, struct tl_error *err)
{
    return tl_option_time(value, SECOND_MS, 365 * DAY_MS, context, err);
}

static bool apply_count(void *context, const char *value, struct tl_error *err)
{
    return tl_option_number(value, UINT32_MAX, context, err);
}

static bool apply_format(void *context, const char *value, struct tl_error *err)
{
    if (strcmp(value, "csv") != 0 && strcmp(value, "jsonl") != 0)
        return tl_error_set(err, TL_ERR_INVALID, "must be csv or jsonl");
    *(const char **)context = value;
    return true;
}

static bool apply_output(void *context, const char *value, struct tl_error *err)
{
    static const char *const names[] = {
        [TL_OUTPUT_TABLE] = "table", [TL_OUTPUT_JSON] = "json", [TL_OUTPUT_YAML] = "yaml"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(value, names[i]) == 0) {
            *(enum tl_output *)context = (enum tl_output)i;
            return true;
        }
    }
    return tl_error_set(err, TL_ERR_INVALID, "must be table, json or yaml");
}

static bool apply_processes(void *context, const char *value, struct tl_error *err)
{
    return tl_option_number(value, PROCESSES_MOST, context, err);
}

/* ---- the table ---- */

#define AT(field) .offset = offsetof(struct tl_ctl_options, field)

static const struct {
    unsigned bit; /* of the commands that take it */
    const char *name, *argument, *help;
    bool (*apply)(void *context, const char *value, struct tl_error *err);
    size_t offset; /* of the context */
    char letter;
} table_rows[] = {
    /* what it is about */
    {TL_OPTION_QUEUE, "queue", "NAME", "only this queue", tl_option_text, AT(queue), .letter = 'q'},
    {TL_OPTION_WORKER, "worker", "HOST:PORT",
     "compare with what this worker shows visitors; several: commas", tl_option_text, AT(worker)},
    {TL_OPTION_INTERVAL, "interval", "TIME",
     "time between two refreshes: 500ms, 1s, ... (default: 1s)", apply_interval, AT(interval_ms)},
    {TL_OPTION_COUNT, "count", "N", "end after N refreshes", apply_count, AT(count)},
    {TL_OPTION_PROCESSES, "processes", "N", "worker processes, instead of the configured number",
     apply_processes, AT(processes)},
    {TL_OPTION_FOR, "for", "TIME",
     "only for this time: 30m, 2h, 7d, ... (default: until unblocked)", apply_for, AT(for_ms)},
    {TL_OPTION_RECOVER, "now", NULL, "end the recovery now", tl_option_flag, AT(now)},
    {TL_OPTION_RECOVER, "wait", "TIME", "extend the recovery by TIME: 30s, 2m, ...", apply_wait,
     AT(wait_ms)},
    {TL_OPTION_EXPORT, "format", "FORMAT", "csv (default) or jsonl: JSON, a line each",
     apply_format, AT(format)},
    {TL_OPTION_FROM, "from", "N", "begin at this position (default: 1)", apply_count, AT(from)},
    {TL_OPTION_LIMIT, "limit", "N", "maximum number of entries", apply_count, AT(limit)},
    {TL_OPTION_REFERENCE, "reference", "CODE", "the visitor whose page shows this code",
     tl_option_text, AT(reference)},
    {TL_OPTION_CONNECT, "connect", NULL, "also connect to the store, and say whether it is fit",
     tl_option_flag, AT(connect)},
    {TL_OPTION_DRY_RUN, "dry-run", NULL, "only say what would change", tl_option_flag, AT(dry_run),
     'n'},
    /* where the system is, and how a command speaks */
    {TL_OPTION_CONFIG, "config", "FILE",
     "the configuration file (default: " INSTALLED_CONFIG " where that exists)", tl_option_text,
     AT(config)},
    {TL_OPTION_REDIS, "redis", "URL", "use this Redis instead of the configured one",
     tl_option_text, AT(redis)},
    {TL_OPTION_DATA, "data", "DIR", "the data folder of `tellerline up` (default: data)",
     tl_option_text, AT(data)},
    {TL_OPTION_SERVER, "server", "URL",
     "ask this admin listener instead of Redis, with the token of TELLERLINE_TOKEN", tl_option_text,
     AT(server)},
    {TL_OPTION_SERVER, "token-file", "FILE", "the token for --server is in this file",
     tl_option_text, AT(token_file)},
    {TL_OPTION_OUTPUT, "output", "FORM", "table (default), json or yaml", apply_output, AT(output),
     .letter = 'o'},
    {TL_OPTION_YES, "yes", NULL, "do not ask; for scripts", tl_option_flag, AT(yes), .letter = 'y'},
};

/* Does the command use the file of the package? */
static bool installed_counts(const struct tl_ctl_command *command)
{
    return (command->options & TL_OPTION_CONFIG) != 0 &&
           (command->options & (TL_OPTION_PROCESSES | TL_OPTION_PLAN)) == 0;
}

void tl_ctl_options_rows(const struct tl_ctl_command *command, struct tl_ctl_options *options,
                         struct tl_option table[TL_OPTIONS_MAX + 1])
{
    size_t n = 0;
    *options = (struct tl_ctl_options){.interval_ms = 1000, .format = "csv"};
    if ((command->options & TL_OPTION_PLAN) != 0)
        n = tl_plan_options_rows(&options->plan, table);
    if ((command->options & TL_OPTION_REHEARSE) != 0) {
        n = tl_rehearse_options_rows(&options->rehearse, table);
        n += tl_crowd_options_rows(&options->plan, &table[n]);
    }
    for (size_t i = 0; i < sizeof(table_rows) / sizeof(table_rows[0]); i++) {
        if ((command->options & table_rows[i].bit) == 0)
            continue;
        table[n] = (struct tl_option){.name = table_rows[i].name,
                                      .argument = table_rows[i].argument,
                                      .help = table_rows[i].help,
                                      .apply = table_rows[i].apply,
                                      .context = (char *)options + table_rows[i].offset,
                                      .letter = table_rows[i].letter};
        if (table_rows[i].bit == TL_OPTION_CONFIG && !installed_counts(command))
            table[n].help = "the configuration file; without it, defaults and environment";
        n++;
    }
    table[n++] =
        (struct tl_option){"help", NULL, "print this", tl_option_flag, &options->help, true, 'h'};
    table[n] = (struct tl_option){0};
}

/* ---- the command line ---- */

bool tl_installed_find(const struct tl_ctl_command *command, const char *path,
                       struct tl_ctl_options *options, struct tl_error *err)
{
    const char *redis = getenv("TELLERLINE_REDIS_URL");
    if (!installed_counts(command) || options->config != NULL || options->redis != NULL ||
        options->server != NULL || options->data != NULL || (redis != NULL && *redis != '\0') ||
        access(path, F_OK) != 0)
        return true;
    if (access(path, R_OK) != 0)
        return tl_error_set(err, TL_ERR_INVALID,
                            "%s: not readable: use sudo, or say where the system is "
                            "(--config, --redis, --server)",
                            path);
    options->config = path;
    return true;
}

bool tl_ctl_options_read(const struct tl_ctl_command *command, int argc, char **argv,
                         struct tl_ctl_options *options, struct tl_error *err)
{
    struct tl_option table[TL_OPTIONS_MAX + 1];
    tl_ctl_options_rows(command, options, table);
    int first_operand = tl_options_read(table, argc, argv, err);
    if (first_operand < 0)
        return false;
    options->config = tl_program_config_path(options->config);
    if (!options->help && !tl_installed_find(command, INSTALLED_CONFIG, options, err))
        return false;
    if (options->data == NULL)
        options->data = "data";
    options->words = argv + first_operand;
    options->n_words = argc - first_operand;
    return true;
}

/* Is this a number of operands for a usage line such as "QUEUE [NAME=VALUE...]"? */
static bool is_count(const struct tl_ctl_command *command, int n)
{
    int least = 0, most = 0;
    bool optional = false;
    for (const char *at = command->words; at != NULL && *at != '\0'; at += strspn(at, " ")) {
        size_t length = strcspn(at, " ");
        optional = optional || at[0] == '[';
        least += optional ? 0 : 1;
        most = strstr(at, "...") != NULL ? INT_MAX : most + 1;
        at += length;
    }
    return n >= least && n <= (command->most_words > 0 ? command->most_words : most);
}

bool tl_ctl_options_parse(const struct tl_ctl_command *command, int argc, char **argv,
                          struct tl_ctl_options *options, struct tl_error *err)
{
    if (!tl_ctl_options_read(command, argc, argv, options, err))
        return false;
    if (options->help || is_count(command, options->n_words))
        return true;
    return tl_error_set(err, TL_ERR_INVALID, "usage: tellerline %s [options]%s%s", command->name,
                        command->words != NULL ? " " : "",
                        command->words != NULL ? command->words : "");
}
