/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>
#include <string.h>

#include "common/base/units.h"
#include "common/role/options.h"
#include "common/role/program.h"

#include "ctl/installed.h"
#include "ctl/options.h"

enum {
    INTERVAL_LEAST_MS = 100,
    PROCESSES_MOST = 256,
    WAIT_LEAST_MS = 1000,
    WAIT_MOST_MS = 86400000,
    FOR_LEAST_MS = 1000,
};
#define FOR_MOST_MS (INT64_C(365) * 86400000)

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
    int64_t *wait_ms = context;
    if (!tl_duration_parse(value, wait_ms, err))
        return false;
    return (*wait_ms >= WAIT_LEAST_MS && *wait_ms <= WAIT_MOST_MS) ||
           tl_error_set(err, TL_ERR_INVALID, "must be from 1s to 1d");
}

static bool apply_for(void *context, const char *value, struct tl_error *err)
{
    int64_t *for_ms = context;
    if (!tl_duration_parse(value, for_ms, err))
        return false;
    return (*for_ms >= FOR_LEAST_MS && *for_ms <= FOR_MOST_MS) ||
           tl_error_set(err, TL_ERR_INVALID, "must be from 1s to 365d");
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

static bool apply_processes(void *context, const char *value, struct tl_error *err)
{
    return tl_option_number(value, PROCESSES_MOST, context, err);
}

/* An option, and the bit of the commands that take it. */
struct row {
    unsigned bit;
    struct tl_option option;
};

static size_t append(const struct tl_ctl_command *command, const struct row *rows, size_t n_rows,
                     struct tl_option *table, size_t n)
{
    for (size_t i = 0; i < n_rows; i++) {
        if ((command->options & rows[i].bit) != 0)
            table[n++] = rows[i].option;
    }
    return n;
}

/* Where the system is, and how a command speaks. */
static size_t append_common(const struct tl_ctl_command *command, struct tl_ctl_options *options,
                            struct tl_option *table, size_t n)
{
    const struct row rows[] = {
        {TL_OPTION_CONFIG,
         {"config", "FILE",
          tl_installed_counts(command)
              ? "the configuration file (default: " TL_INSTALLED_CONFIG " where that exists)"
              : "the configuration file; without it, defaults and environment",
          tl_option_text, &options->config, false}},
        {TL_OPTION_REDIS,
         {"redis", "URL", "use this Redis instead of the configured one", tl_option_text,
          &options->redis, false}},
        {TL_OPTION_DATA,
         {"data", "DIR", "the data folder of `tellerline up` (default: data)", tl_option_text,
          &options->data, false}},
        {TL_OPTION_SERVER,
         {"server", "URL",
          "ask this admin listener instead of Redis, with the token of TELLERLINE_TOKEN",
          tl_option_text, &options->server, false}},
        {TL_OPTION_SERVER,
         {"token-file", "FILE", "the token for --server is in this file", tl_option_text,
          &options->token_file, false}},
        {TL_OPTION_JSON, {"json", NULL, "write JSON", tl_option_flag, &options->json, false}},
        {TL_OPTION_YES,
         {"yes", NULL, "do not ask; for scripts", tl_option_flag, &options->yes, false}},
    };
    return append(command, rows, sizeof(rows) / sizeof(rows[0]), table, n);
}

/* What it is about. */
static size_t append_own(const struct tl_ctl_command *command, struct tl_ctl_options *options,
                         struct tl_option *table, size_t n)
{
    const struct row rows[] = {
        {TL_OPTION_QUEUE,
         {"queue", "NAME", "only this queue", tl_option_text, &options->queue, false}},
        {TL_OPTION_WORKER,
         {"worker", "HOST:PORT", "compare with what this worker shows visitors; several: commas",
          tl_option_text, &options->worker, false}},
        {TL_OPTION_INTERVAL,
         {"interval", "TIME", "time between two refreshes: 500ms, 1s, ... (default: 1s)",
          apply_interval, &options->interval_ms, false}},
        {TL_OPTION_COUNT,
         {"count", "N", "end after N refreshes", apply_count, &options->count, false}},
        {TL_OPTION_PROCESSES,
         {"processes", "N", "worker processes, instead of the configured number", apply_processes,
          &options->processes, false}},
        {TL_OPTION_FOR,
         {"for", "TIME", "only for this time: 30m, 2h, 7d, ... (default: until unblocked)",
          apply_for, &options->for_ms, false}},
        {TL_OPTION_RECOVER,
         {"now", NULL, "end the recovery now", tl_option_flag, &options->now, false}},
        {TL_OPTION_RECOVER,
         {"wait", "TIME", "let the recovery end in this time: 30s, 2m, ...", apply_wait,
          &options->wait_ms, false}},
        {TL_OPTION_EXPORT,
         {"format", "FORMAT", "csv (default) or jsonl: JSON, a line each", apply_format,
          &options->format, false}},
        {TL_OPTION_EXPORT,
         {"output", "FILE", "write there instead of the standard output", tl_option_text,
          &options->output, false}},
        {TL_OPTION_FROM,
         {"from", "N", "begin at this position (default: 1)", apply_count, &options->from, false}},
        {TL_OPTION_LIMIT, {"limit", "N", "at most so many", apply_count, &options->limit, false}},
        {TL_OPTION_REFERENCE,
         {"reference", "CODE", "the visitor whose page shows this code", tl_option_text,
          &options->reference, false}},
        {TL_OPTION_CONNECT,
         {"connect", NULL, "also connect to the store, and say whether it is fit", tl_option_flag,
          &options->connect, false}},
        {TL_OPTION_DRY_RUN,
         {"dry-run", NULL, "only say what would change", tl_option_flag, &options->dry_run, false}},
    };
    return append(command, rows, sizeof(rows) / sizeof(rows[0]), table, n);
}

void tl_ctl_options_rows(const struct tl_ctl_command *command, struct tl_ctl_options *options,
                         struct tl_option table[TL_OPTIONS_MAX + 1])
{
    struct tl_option plan[TL_PLAN_OPTIONS_N];
    size_t n = 0;
    tl_plan_options_rows(&options->plan, plan);
    for (size_t i = 0; i < TL_PLAN_OPTIONS_N; i++) {
        if ((command->options & TL_OPTION_PLAN) != 0)
            table[n++] = plan[i];
    }
    if ((command->options & TL_OPTION_REHEARSE) != 0) {
        tl_rehearse_options_rows(&options->rehearse, &table[n]);
        n += TL_REHEARSE_OPTIONS_N;
        tl_crowd_options_rows(&options->plan, &table[n]);
        n += TL_CROWD_OPTIONS_N;
    }
    n = append_own(command, options, table, n);
    n = append_common(command, options, table, n);
    table[n++] =
        (struct tl_option){"help", NULL, "print this", tl_option_flag, &options->help, true};
    table[n] = (struct tl_option){0};
}

bool tl_ctl_options_read(const struct tl_ctl_command *command, int argc, char **argv,
                         struct tl_ctl_options *options, struct tl_error *err)
{
    struct tl_option table[TL_OPTIONS_MAX + 1];
    *options = (struct tl_ctl_options){.interval_ms = 1000, .format = "csv"};
    tl_ctl_options_rows(command, options, table);
    int first_operand = tl_options_read(table, argc, argv, err);
    if (first_operand < 0)
        return false;
    options->config = tl_program_config_path(options->config);
    if (!options->help && !tl_installed_find(command, TL_INSTALLED_CONFIG, options, err))
        return false;
    if (options->data == NULL)
        options->data = "data";
    options->words = argv + first_operand;
    options->n_words = argc - first_operand;
    return true;
}

bool tl_ctl_options_parse(const struct tl_ctl_command *command, int argc, char **argv,
                          struct tl_ctl_options *options, struct tl_error *err)
{
    if (!tl_ctl_options_read(command, argc, argv, options, err))
        return false;
    if (options->help ||
        (options->n_words >= command->min_words && options->n_words <= command->max_words))
        return true;
    return tl_error_set(err, TL_ERR_INVALID, "usage: tellerline %s [options]%s%s", command->name,
                        command->words[0] != '\0' ? " " : "", command->words);
}
