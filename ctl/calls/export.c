/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/clock.h"

#include "ctl/calls/calls.h"

/* Where the export goes. */
struct export
{
    FILE *file;
    const char *name;
    struct tl_progress progress;
    bool quiet;               /* no progress */
    uint64_t lines, expected; /* expected 0: not known */
};

static bool take(void *context, const char *bytes, size_t length, struct tl_error *err)
{
    struct export *export = context;
    if (fwrite(bytes, 1, length, export->file) != length)
        return tl_error_set(err, TL_ERR_SYSTEM, "%s: %s", export->name, strerror(errno));
    for (size_t i = 0; i < length; i++)
        export->lines += bytes[i] == '\n' ? 1 : 0;
    if (!export->quiet)
        tl_progress_at(&export->progress, export->lines, export->expected, tl_clock_ms());
    return true;
}

/* How many visitors there are now, for the progress. */
static uint64_t count(struct tl_ctl_call *call, const char *queue)
{
    struct tl_error err = {0};
    const struct tl_ctl_ask ask = {.operation = "getStats",
                                   .arguments = json_pack("{s:s}", "queue", queue)};
    json_t *stats = tl_ctl_call_get(call, &ask, &err);
    uint64_t n = tl_json_count(stats, "waiting") + tl_json_count(stats, "active");
    json_decref(stats);
    return n;
}

static void expect(void *context, uint64_t lines)
{
    struct export *export = context;
    export->expected = lines;
}

/* Writes all of it. The file, if there is one, is complete afterwards or does not exist. */
static int write_all(struct tl_ctl_call *call, const char *queue, struct export *export,
                     const struct tl_ctl_ask *ask)
{
    struct tl_error err = {0};
    struct tl_control_answer answer;
    const struct tl_ctl_stream stream = {.sink = take, .expected = expect, .context = export};
    int status = TL_EXIT_OK;
    tl_progress_begin(&export->progress, "export", tl_clock_ms());
    bool ok = tl_ctl_call_stream(call, ask, &stream, &answer, &err);
    if (!export->quiet)
        tl_progress_end(&export->progress);
    if (ok && fflush(export->file) != 0)
        ok = tl_error_set(&err, TL_ERR_SYSTEM, "%s: %s", export->name, strerror(errno));
    if (!ok)
        status = tl_ctl_fail(TL_EXIT_FAILED, &err);
    else if (!tl_control_succeeded(&answer))
        status = tl_ctl_call_problem(call, ask->operation, queue, &answer);
    tl_control_answer_clear(&answer);
    return status;
}

/* A terminal shows the export itself; a bar among its lines would only disturb. */
static bool is_shown(const struct export *export)
{
    return export->file == stdout && isatty(STDOUT_FILENO);
}

/* Removes a part of an export; what is no file, such as a device, stays. */
static bool discard(const char *path)
{
    struct stat status;
    return lstat(path, &status) != 0 || !S_ISREG(status.st_mode) || unlink(path) == 0;
}

int tl_command_export(const struct tl_ctl_options *options)
{
    struct tl_error err = {0};
    const char *queue = options->words[0];
    const char *path = options->n_words > 1 ? options->words[1] : "-";
    struct tl_ctl_call *call = tl_ctl_call_open(options, &err);
    if (call == NULL)
        return tl_ctl_fail(TL_EXIT_FAILED, &err);
    bool to_stdout = strcmp(path, "-") == 0;
    struct export export = {.file = to_stdout ? stdout : fopen(path, "we"),
                            .name = to_stdout ? "standard output" : path};
    if (export.file == NULL) {
        int problem = errno;
        tl_ctl_call_close(&call);
        return tl_ctl_refuse(TL_EXIT_FAILED, "%s: %s", path, strerror(problem));
    }
    if (options->server != NULL && isatty(STDERR_FILENO) && !is_shown(&export))
        export.expected = count(call, queue);
    export.quiet = is_shown(&export);
    const struct tl_ctl_ask ask = {.operation = "exportQueue",
                                   .arguments = tl_ctl_arguments(options, &err)};
    int status = write_all(call, queue, &export, &ask);
    tl_ctl_call_close(&call);
    if (!to_stdout && fclose(export.file) != 0 && status == TL_EXIT_OK)
        status = tl_ctl_refuse(TL_EXIT_FAILED, "%s: %s", path, strerror(errno));
    if (!to_stdout && status != TL_EXIT_OK && !discard(path))
        fprintf(stderr, "tellerline: %s holds a part only and cannot be removed: %s\n", path,
                strerror(errno));
    return status;
}
