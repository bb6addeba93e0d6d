/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A queue with a policy by rate, whose admit function has a clock that the test sets: a key of the
 * store. So time passes, jumps and stands still as the test says. What the function admits is
 * noted, and the checks below say whether it was right.
 */
#ifndef TL_TEST_RATE_WORLD_H
#define TL_TEST_RATE_WORLD_H

#include <stdbool.h>
#include <stddef.h>

#include "admitter/store_clock.h"
#include "ingest.h"

enum {
    STEPS_MAX = 20000,
    MOST = 1000000, /* no bound of a step */
};

struct rule {
    long long admit, every, burst;
    bool batches;
};

/* One admission, in the time that really passed. */
struct step {
    long long at, n;
    size_t rule; /* the first of the rules in force: the number of changes before */
    bool full;   /* as many as the step was allowed: a batch may go on */
};

struct world {
    struct test_store *store;
    const char *admit;               /* the function */
    long long time_ms, ahead_ms;     /* real time; by how much the store's clock differs */
    struct tl_store_clock clocks[2]; /* of two admitters, ... */
    size_t serving;                  /* ...of which this one takes the steps */
    int64_t told_ms;                 /* of its clock's jumps */
    struct step steps[STEPS_MAX];    /* those that admitted visitors */
    size_t n_steps;
    unsigned long calls; /* of the function */
    struct rule rules[STEPS_MAX];
    size_t n_rules;
    long long admitted, left, again_ms; /* what the last step returned */
};

/* Makes queue "q" with these settings, and the policy `counter`. */
struct world *test_rate_new(struct test_store *store, const char *settings);
void test_rate_free(struct world **world);

/* n visitors join. / At most n sessions end. / The visitors who wait leave. */
void test_rate_join(struct world *world, long long n);
void test_rate_end_sessions(struct world *world, long long n);
void test_rate_empty_line(struct world *world);

/* One step of an admitter that knows the store's clock, and wants to admit at most `most`. */
void test_rate_step(struct world *world, long long most);
/* The admitter in reserve looks at the store's clock. / It takes over. */
void test_rate_look(struct world *world);
void test_rate_take_over(struct world *world);
/* Steps until no more may be admitted now. Returns how many were. */
long long test_rate_admit(struct world *world);

void test_rate_set(struct world *world, const char *name, const char *value);
void test_rate_rule(struct world *world, const char *policy, const struct rule *rule);

/* The store comes back as another one, with the budget that `kept` says, or the present one. */
void test_rate_forget(struct world *world, const char *kept);
/* The field of the state. */
void test_rate_budget(struct world *world, char text[200]);

/* Fail unless no window held more than it may; unless each batch began `every` after the last step
 * of the one before. */
void test_rate_windows(const struct world *world);
void test_rate_lumps(const struct world *world);

#endif
