/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>
#include <string.h>

#include "common/base/text.h"
#include "common/config/rows.h"
#include "common/role/program.h"

#include "ctl/shell/shell.h"

#define INSTALLED_CONFIG      "/etc/tellerline/tellerline.yaml"
#define INSTALLED_ENVIRONMENT "/etc/default/tellerline"

/* ---- the table ---- */

static const char *const outputs[] = {
    [TL_OUTPUT_TABLE] = "table", [TL_OUTPUT_JSON] = "json", [TL_OUTPUT_YAML] = "yaml", NULL};
static const char *const sources[] = {"postgres", NULL};
static const char *const formats[] = {"csv", "jsonl", NULL};
static const char *const forms[] = {"text", "json", "csv", "html", NULL};

#define OWNER struct tl_ctl_options
#define OPTION(name, member, letter_, word, kind, ...)                                             \
    {                                                                                              \
        .value = TL_OPTION_VALUE(name, member, kind, __VA_ARGS__), .argument = word,               \
        .letter = letter_                                                                          \
    }
#define TIME_LAST INT64_C(253402300799999) /* of the year 9999 */
#define ASKS      true
#define SAYS      false /* it is for the command itself */

static const struct tl_ctl_option options_table[] = {
    /* what it is about */
    {TL_OPTION_QUEUE, ASKS, OPTION("queue", queue, 'q', "NAME", STRING, "only this queue")},
    {TL_OPTION_WORKER, SAYS,
     OPTION("worker", worker, 0, "HOST:PORT", STRING,
            "compare with what this worker shows visitors; several: commas")},
    {TL_OPTION_INTERVAL, SAYS,
     OPTION("interval", interval_ms, 0, "TIME", DURATION,
            "time between two refreshes: 500ms, 1s, ... (default: 1s)", .fallback = "1s",
            .min = MILLISECONDS(100), .max = DAYS(1))},
    {TL_OPTION_COUNT, SAYS,
     OPTION("count", count, 0, "N", NUMBER, "end after N refreshes", .min = 1, .max = UINT32_MAX)},
    {TL_OPTION_PROCESSES, SAYS,
     OPTION("processes", processes, 0, "N", NUMBER,
            "worker processes, instead of the configured number", .min = 1, .max = 256)},
    {TL_OPTION_ARCHIVE, SAYS,
     OPTION("archive", archive, 0, NULL, BOOL,
            "keep an archive: without archive.url, in a private PostgreSQL")},
    {TL_OPTION_COMPARE, SAYS,
     OPTION("archive", archive, 0, NULL, BOOL,
            "let an archiver compare all with the archive at once, and wait for it")},
    {TL_OPTION_FOR, ASKS,
     OPTION("for", for_ms, 0, "TIME", DURATION,
            "only for this time: 30m, 2h, 7d, ... (default: until unblocked)", .min = SECONDS(1),
            .max = DAYS(365))},
    {TL_OPTION_RECOVER, SAYS, OPTION("now", now, 0, NULL, BOOL, "end the recovery now")},
    {TL_OPTION_RECOVER, ASKS,
     OPTION("wait", wait_ms, 0, "TIME", DURATION, "extend the recovery by TIME: 30s, 2m, ...",
            .min = SECONDS(1), .max = DAYS(1))},
    {TL_OPTION_EXPORT, ASKS,
     OPTION("format", format, 0, "FORMAT", CHOICE, "csv (default) or jsonl: JSON, a line each",
            .names = formats)},
    {TL_OPTION_REPORT, SAYS,
     OPTION("format", format, 0, "FORMAT", CHOICE, "text (default), json, csv or html",
            .names = forms)},
    {TL_OPTION_REPORT, SAYS,
     OPTION("since", since_ms, 0, "TIME", TIME,
            "visitors who came from then on, such as 2026-12-01T20:00:00+09:00", .max = TIME_LAST)},
    {TL_OPTION_REPORT, SAYS,
     OPTION("until", until_ms, 0, "TIME", TIME, "visitors who came before", .max = TIME_LAST)},
    {TL_OPTION_REPORT, SAYS,
     OPTION("with", with, 0, "QUEUE[@SALE]", STRING, "a second sale beside it")},
    {TL_OPTION_REPORT, SAYS, OPTION("sales", sales, 0, NULL, BOOL, "list the sales of the queue")},
    {TL_OPTION_FROM, SAYS,
     OPTION("from", from, 0, "N", NUMBER, "begin at this position (default: 1)", .min = 1,
            .max = UINT32_MAX)},
    {TL_OPTION_SOURCE, SAYS,
     OPTION("from", source, 0, "SOURCE", CHOICE, "postgres (default): the archive",
            .names = sources)},
    {TL_OPTION_TRAIL, SAYS,
     OPTION("generation", generation, 0, "N", NUMBER, "of the queue (default: the last one)",
            .min = 1, .max = INT64_MAX)},
    {TL_OPTION_VERIFY | TL_OPTION_PROOF, SAYS,
     OPTION("key", key, 0, "KEY", STRING, "the key of `tellerline trail key`: who signed it")},
    {TL_OPTION_VERIFY, SAYS,
     OPTION("since", older, 0, "FILE", STRING,
            "an older checkpoint or trail: nothing before it was altered")},
    {TL_OPTION_VERIFY, SAYS,
     OPTION("archive", archive, 0, NULL, BOOL,
            "that the places that ended are in PostgreSQL as the trail says")},
    {TL_OPTION_LIMIT, ASKS,
     OPTION("limit", limit, 0, "N", NUMBER, "maximum number of entries", .min = 1,
            .max = UINT32_MAX)},
    {TL_OPTION_REFERENCE, ASKS,
     OPTION("reference", reference, 0, "CODE", STRING, "the visitor whose page shows this code")},
    {TL_OPTION_CONNECT, SAYS,
     OPTION("connect", connect, 0, NULL, BOOL,
            "also connect to the store, and say whether it is fit")},
    {TL_OPTION_DRY_RUN, SAYS,
     OPTION("dry-run", dry_run, 'n', NULL, BOOL, "only say what would change")},
    /* where the system is, and how a command speaks */
    {TL_OPTION_CONFIG, SAYS,
     OPTION("config", config, 0, "FILE", STRING,
            "the configuration file (default: " INSTALLED_CONFIG ", with " INSTALLED_ENVIRONMENT
            ")")},
    {TL_OPTION_REDIS, SAYS,
     OPTION("redis", redis, 0, "URL", STRING, "use this Redis instead of the configured one")},
    {TL_OPTION_DATA, SAYS,
     OPTION("data", data, 0, "DIR", STRING, "the data folder of `tellerline up` (default: data)")},
    {TL_OPTION_SERVER, SAYS,
     OPTION("server", server, 0, "URL", STRING,
            "ask this admin listener instead of Redis, with the token of TELLERLINE_TOKEN")},
    {TL_OPTION_SERVER, SAYS,
     OPTION("token-file", token_file, 0, "FILE", STRING, "the token for --server is in this file")},
    {TL_OPTION_OUTPUT, SAYS,
     OPTION("output", output, 'o', "FORM", CHOICE, "table (default), json or yaml",
            .names = outputs)},
    {TL_OPTION_YES, SAYS, OPTION("yes", yes, 'y', NULL, BOOL, "do not ask; for scripts")},
    {0,
     SAYS,
     {.value = {.path = "help", .offset = offsetof(OWNER, help), .help = "print this"},
      .letter = 'h',
      .last = true}},
};

const struct tl_ctl_option *tl_ctl_option_table(size_t *n)
{
    *n = sizeof(options_table) / sizeof(options_table[0]);
    return options_table;
}

void tl_ctl_options_rows(const struct tl_ctl_command *command, struct tl_ctl_options *options,
                         struct tl_option table[TL_OPTIONS_MAX + 1])
{
    size_t n = 0, n_rows;
    const struct tl_ctl_option *rows = tl_ctl_option_table(&n_rows);
    *options = (struct tl_ctl_options){.command = command};
    if ((command->options & TL_OPTION_PLAN) != 0)
        n = tl_plan_options_rows(&options->plan, table);
    if ((command->options & TL_OPTION_REHEARSE) != 0) {
        n = tl_rehearse_options_rows(&options->rehearse, table);
        n += tl_crowd_options_rows(&options->plan, &table[n]);
    }
    const size_t first = n;
    for (size_t i = 0; i < n_rows; i++) {
        if (rows[i].of != 0 && (command->options & rows[i].of) == 0)
            continue;
        table[n] = rows[i].option;
        table[n].base = options;
        if (rows[i].of == TL_OPTION_CONFIG && !tl_installed_counts(command))
            table[n].value.help = "the configuration file; without it, defaults and environment";
        n++;
    }
    table[n] = (struct tl_option){0};
    tl_options_default(&table[first]);
}

/* ---- the command line ---- */

bool tl_ctl_options_read(const struct tl_ctl_command *command, int argc, char **argv,
                         struct tl_ctl_options *options, struct tl_error *err)
{
    struct tl_option table[TL_OPTIONS_MAX + 1];
    tl_ctl_options_rows(command, options, table);
    int first_operand = tl_options_read(table, argc, argv, err);
    if (first_operand < 0)
        return false;
    options->config = tl_program_config_path(options->config);
    options->words = argv + first_operand;
    options->n_words = argc - first_operand;
    return true;
}

bool tl_ctl_options_locate(struct tl_ctl_options *options, struct tl_error *err)
{
    const char *given = options->config;
    struct tl_error why = {0};
    bool found = tl_installed_find(options->command, INSTALLED_CONFIG, options, err);
    if (options->config != given && !tl_installed_environment(INSTALLED_ENVIRONMENT, &why))
        fprintf(stderr, "tellerline: going on without the settings of %s; sudo reads them\n",
                why.text);
    if (options->data == NULL)
        options->data = "data";
    return found;
}

const char *tl_operand_name(const char *words, int i, size_t *length)
{
    for (const char *at = words; at != NULL;) {
        at += strspn(at, " []");
        *length = strcspn(at, " .]");
        if (*length == 0)
            return NULL;
        bool repeats = strncmp(at + *length, "...", 3) == 0;
        if (i-- == 0 || repeats)
            return at;
        at += *length + strspn(at + *length, ".]");
    }
    return NULL;
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
    bool apart = command->words_apart > 0 && options->n_words == command->words_apart;
    if (options->help)
        return true;
    if (is_count(command, options->n_words))
        return apart || tl_ctl_options_locate(options, err);
    return tl_error_set(err, TL_ERR_INVALID, "usage: tellerline %s [options]%s%s", command->name,
                        command->words != NULL ? " " : "",
                        command->words != NULL ? command->words : "");
}
