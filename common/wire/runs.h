/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs: ascending numbers in a short form, [first, count, gap, count, gap, count, ...]. gap (>= 1)
 * is how many numbers are left out between the end of a run and the start of the next.
 */
#ifndef TL_RUNS_H
#define TL_RUNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tl_fields;

struct tl_run {
    uint64_t first, count;
};

struct tl_runs {
    size_t n;
    struct tl_run *runs;
};

/* Takes the next field, runs of places. Also after a failure the caller frees runs->runs. */
bool tl_fields_runs(struct tl_fields *fields, struct tl_runs *runs);

#endif
