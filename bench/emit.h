/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON lines by which a group of measurements tells bench/run what it found (bench/README.md).
 */
#ifndef TL_BENCH_EMIT_H
#define TL_BENCH_EMIT_H

#include <stdbool.h>
#include <stdint.h>

/* One figure, or the reason why there is none. Strings are borrowed; NULL ones are left out. */
struct tl_figure {
    const char *group, *metric, *name;
    uint64_t n; /* how many wait */
    double value;
    const char *unit;
    bool lower_is_better;
    bool ours;
    bool extrapolated;    /* not measured at this n; the note says from what */
    const char *baseline; /* name of the figure of the same metric, n and unit to compare with */
    double target;        /* wanted ratio to the baseline; 0: none */
    uint64_t wrong;       /* results that were incorrect */
    double over_s;        /* > 0: the budget ran out after so many seconds... */
    uint64_t done, of;    /* ...when this much was done */
    const char *skip;     /* why there is no figure */
    const char *note;
};

/* Prints the line on standard output and flushes it. value is left out when it is NaN. */
void tl_emit_figure(const struct tl_figure *figure);
/* Says how far the group is: done of `of`, and what comes next. */
void tl_emit_progress(uint64_t done, uint64_t of, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* {"versions": {name: version}} */
void tl_emit_version(const char *name, const char *version);
/* {"about": {...}}: what a name in the tables stands for, and where it comes from. */
void tl_emit_about(const char *group, const char *name, const char *what, const char *source);

#endif
