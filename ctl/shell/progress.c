/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "ctl/shell/progress.h"
#include "ctl/shell/terminal.h"

enum {
    EVERY_MS = 200,
    BAR = 24,        /* columns of the bar itself */
    EARLY_MS = 1000, /* no forecast before */
    TEXT_SIZE = 256,
};

void tl_progress_begin(struct tl_progress *progress, const char *what, int64_t now_ms)
{
    *progress = (struct tl_progress){
        .what = what, .live = isatty(STDERR_FILENO), .begun_ms = now_ms, .next_ms = now_ms};
}

void tl_progress_text(const struct tl_progress *progress, uint64_t done, uint64_t total,
                      int64_t now_ms, int columns, char *text, unsigned size)
{
    char bar[BAR + 1], left[40] = "", rest[64] = "";
    int64_t elapsed_ms = now_ms - progress->begun_ms;
    if (done > total && total > 0)
        total = done;
    size_t filled = total > 0 ? (size_t)(BAR * done / total) : 0;
    memset(bar, '.', BAR);
    memset(bar, '#', filled);
    bar[BAR] = '\0';
    if (total > 0 && done > 0 && elapsed_ms >= EARLY_MS) {
        double ms = (double)elapsed_ms * (double)(total - done) / (double)done;
        tl_terminal_duration((int64_t)ms, left, sizeof(left));
        snprintf(rest, sizeof(rest), ", %s left", left);
    }
    if (total > 0)
        snprintf(text, size, "%s [%s] %3" PRIu64 " %%  %" PRIu64 " of %" PRIu64 "%s",
                 progress->what, bar, 100 * done / total, done, total, rest);
    else
        snprintf(text, size, "%s  %" PRIu64, progress->what, done);
    if (columns > 0 && strlen(text) > (size_t)columns)
        text[columns] = '\0';
}

void tl_progress_at(struct tl_progress *progress, uint64_t done, uint64_t total, int64_t now_ms)
{
    char text[TEXT_SIZE];
    if (!progress->live || now_ms < progress->next_ms)
        return;
    progress->next_ms = now_ms + EVERY_MS;
    tl_progress_text(progress, done, total, now_ms, tl_terminal_columns(stderr) - 1, text,
                     sizeof(text));
    fprintf(stderr, "\r%s\033[K", text);
    fflush(stderr);
}

void tl_progress_end(struct tl_progress *progress)
{
    if (progress->live)
        fputs("\r\033[K", stderr);
    progress->live = false;
}
