/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/units.h"

#include "ctl/calls/call.h"
#include "ctl/calls/draw_page.h"
#include "ctl/calls/rows.h"
#include "ctl/shell/json.h"
#include "ctl/shell/progress.h"
#include "ctl/shell/terminal.h"

static void report(const char *queue, const json_t *draw)
{
    char opens_at[TL_UNITS_TEXT_MAX];
    const char *phase = tl_json_text(draw, "phase"), *hash = tl_json_text(draw, "hash");
    bool done = strcmp(phase, "done") == 0;
    tl_terminal_time_of(tl_json_text(draw, "opens_at"), opens_at, sizeof(opens_at));
    if (done)
        printf("%s: %" PRIu64 " visitors were drawn at the opening of %s\n", queue,
               tl_row_number(draw, "drawn"), opens_at);
    else if (strcmp(tl_json_text(draw, "opening"), "draw") != 0)
        printf("%s: no draw; visitors stand in the order of arrival (opening: fifo)\n", queue);
    else
        printf("%s: %s at %s\n", queue,
               strcmp(phase, "none") == 0 ? "the draw is held" : "the draw is under way, since",
               opens_at);
    if (*hash != '\0')
        printf("  hash of the seed: %s\n", hash);
    if (done)
        printf("  seed:             %s\n", tl_json_text(draw, "seed"));
}

/* The list, from the answer without ids on. */
static int copy_list(struct tl_ctl_call *call, const char *path, const json_t *draw, FILE *out)
{
    struct tl_progress progress;
    struct tl_error err = {0};
    struct tl_draw_copy copy = {.out = out};
    if (!tl_draw_copy_add(&copy, draw, &err))
        return tl_ctl_fail(tl_ctl_file_status(&err), &err);
    const uint64_t drawn = copy.head.drawn;
    int status = TL_EXIT_OK;
    tl_progress_begin(&progress, "list", tl_clock_ms());
    while (status == TL_EXIT_OK && copy.written < drawn) {
        char target[TL_CTL_TARGET_MAX + 64];
        json_t *page = NULL;
        const uint64_t before = copy.written;
        snprintf(target, sizeof(target), "%s?from=%" PRIu64 "&limit=%d", path, before + 1,
                 TL_DRAW_PAGE_IDS);
        const struct tl_ctl_ask ask = {.method = "GET", .target = target};
        status = tl_ctl_call_body(call, &ask, &page);
        if (status != TL_EXIT_OK)
            break;
        bool ok = tl_draw_copy_add(&copy, page, &err);
        json_decref(page);
        if (ok && copy.written == before)
            ok = tl_error_set(&err, TL_ERR_INVALID, "the list has not all of the %" PRIu64, drawn);
        if (!ok)
            status = tl_ctl_fail(tl_ctl_file_status(&err), &err);
        tl_progress_at(&progress, copy.written, drawn, tl_clock_ms());
    }
    tl_progress_end(&progress);
    return status;
}

static int write_list(const struct tl_ctl_options *options, struct tl_ctl_call *call,
                      const char *target, const json_t *draw)
{
    const char *path = options->words[1];
    bool to_stdout = strcmp(path, "-") == 0;
    struct tl_error err = {0};
    if (strcmp(tl_json_text(draw, "phase"), "done") != 0) {
        tl_error_set(&err, TL_ERR_INVALID, "there is no list before the draw is done");
        return tl_ctl_fail(TL_EXIT_PROBLEM, &err);
    }
    FILE *out = to_stdout ? stdout : fopen(path, "we");
    if (out == NULL) {
        tl_error_set(&err, TL_ERR_SYSTEM, "%s: %s", path, strerror(errno));
        return tl_ctl_fail(TL_EXIT_FAILED, &err);
    }
    int status = copy_list(call, target, draw, out);
    int closed = to_stdout ? fflush(out) : fclose(out);
    if (closed != 0 && status == TL_EXIT_OK) {
        tl_error_set(&err, TL_ERR_SYSTEM, "%s: %s", path, strerror(errno));
        status = tl_ctl_fail(TL_EXIT_FAILED, &err);
    }
    return status;
}

int tl_command_draw(const struct tl_ctl_options *options)
{
    struct tl_error err = {0};
    char target[TL_CTL_TARGET_MAX];
    json_t *draw = NULL;
    bool lists = options->n_words > 1;
    if (!tl_ctl_target(target, "queues", options->words[0], "draw", NULL))
        return TL_EXIT_PROBLEM;
    struct tl_ctl_call *call = tl_ctl_call_open(options, &err);
    if (call == NULL)
        return tl_ctl_fail(TL_EXIT_FAILED, &err);
    const struct tl_ctl_ask ask = {.method = "GET", .target = target};
    int status = tl_ctl_call_body(call, &ask, &draw);
    if (status == TL_EXIT_OK && lists)
        status = write_list(options, call, target, draw);
    if (status == TL_EXIT_OK && options->json && !lists)
        status = tl_json_write(json_incref(draw)) ? TL_EXIT_OK : TL_EXIT_FAILED;
    else if (status == TL_EXIT_OK && !(lists && strcmp(options->words[1], "-") == 0))
        report(options->words[0], draw);
    json_decref(draw);
    tl_ctl_call_close(&call);
    return status;
}
