/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A simulated line: visitors arrive, wait, lose patience, are admitted, and their sessions end. The
 * production code of the worker follows it by the same events as in production (tl_line, tl_eta);
 * on the way, visitors are told their wait by it and by the baselines. What came true is known at
 * the end. Deterministic by seed. Times in ms.
 */
#ifndef TL_BENCH_CROWD_H
#define TL_BENCH_CROWD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CHANGES_MAX = 8, WAYS = 4 };

/* Who tells the wait. */
enum way {
    OURS,
    CONSTANT, /* ceil(position / capacity) * a session, as the operator would configure it */
    WEIGHTED, /* position / an exponentially weighted rate of admission */
    LITTLE,   /* position * the mean session so far / capacity */
};

struct change {
    int64_t at_ms;
    uint64_t capacity;
    bool paused;
};

struct visitor {
    int64_t arrives_ms;
    int64_t session_ms;
    int64_t patience_ms; /* INT64_MAX: never leaves */
    int64_t admitted_ms; /* output; INT64_MAX: never */
};

struct crowd {
    uint64_t seed;
    struct visitor *visitors; /* in order of arrival */
    size_t n;
    uint64_t capacity;
    struct change changes[CHANGES_MAX]; /* in order of time */
    size_t n_changes;
    int64_t look_ms;    /* so often one visitor of each class is told the wait */
    int64_t judge_from; /* only then */
    int64_t until_ms;
    double session_ms; /* for CONSTANT; from judge_from on the mean of those that ended before */
};

struct told {
    double low_s, median_s, high_s;
};

struct promise {
    size_t visitor;
    uint64_t position;
    int64_t at_ms;
    struct told told[WAYS];
    double truth_s;
    int64_t since_change_ms;
    bool overtaken; /* a change came before it could come true */
};

struct outcome {
    struct promise *promises; /* whose truth is known; owned */
    size_t n, room;
    size_t views, unknown; /* views asked for; without an estimate */
    size_t rises, unnamed; /* estimates that rose by a tenth and 2 s; without a reason */
};

/* Simulates it and adds what was told to the outcome. */
void crowd_run(const struct crowd *crowd, struct outcome *outcome);
void outcome_free(struct outcome *outcome);

#endif
