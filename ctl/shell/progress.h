/* SPDX-License-Identifier: Apache-2.0 */
/* How far long work is: a bar on standard error, if that is a terminal; else nothing. */
#ifndef TL_CTL_SHELL_PROGRESS_H
#define TL_CTL_SHELL_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct tl_progress {
    const char *what; /* borrowed: "export" */
    bool live;        /* a terminal */
    int64_t begun_ms, next_ms;
};

/* now_ms: local monotonic time, as in all of these. */
void tl_progress_begin(struct tl_progress *progress, const char *what, int64_t now_ms);
/* Draws, a few times a second at most. total 0: not known. */
void tl_progress_at(struct tl_progress *progress, uint64_t done, uint64_t total, int64_t now_ms);
/* Clears the line. */
void tl_progress_end(struct tl_progress *progress);

/* The text of the bar, without line end, in at most `columns` columns: the fraction, the numbers,
 * and how long the rest will take. */
void tl_progress_text(const struct tl_progress *progress, uint64_t done, uint64_t total,
                      int64_t now_ms, int columns, char *text, unsigned size);

#endif
