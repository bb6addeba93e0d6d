/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One way of building a waiting line, as the driver (ways_bench.c) sees it. Each way is a small
 * file of its own that names the design it keeps. They all use the same client with the same
 * pipelining, so that only the design differs. Any trouble ends the program: a measurement that met
 * an error measures nothing.
 *
 * Visitors are numbers here, 1 to n, and stand in this order; their ids (22 characters, as random
 * as the ones a worker makes) follow from the numbers.
 */
#ifndef TL_BENCH_WAY_H
#define TL_BENCH_WAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WAY_BATCH     1000 /* visitors in one command, and in one pipeline where each has its own */
#define WAY_ID_LENGTH 22

#define WAY_CAPACITY 1400 /* may be active at once */
#define WAY_TTL_MS   400  /* how long a session lasts */

struct way {
    const char *name;
    const char *what;   /* the design in a sentence or two */
    const char *source; /* title and address */
    bool postgres;      /* needs PostgreSQL instead of Redis */
    bool ours;
    /* Connects one actor (the joiner, an admitter, ...). */
    void *(*open)(void);
    void (*close)(void *actor);
    /* Empties the store and makes what has to be there. For the first actor only. */
    void (*setup)(void *actor);
    /* Joins visitors first .. first + n - 1; they stand in line when it returns. */
    void (*join)(void *actor, uint64_t first, uint64_t n);
    /* Untimed, after all have joined: what a running system has done by then (vacuum, index). */
    void (*settle)(void *actor, uint64_t n);
    /* Looks up the positions of n waiting visitors, pipelined; 1 is first in line, 0 not waiting.
     */
    void (*positions)(void *actor, const uint64_t *visitors, size_t n, uint64_t *answers);
    /* One step of what lets visitors in: counts who is active as the design does, and lets in as
     * many as WAY_CAPACITY allows, for WAY_TTL_MS. Returns how many. */
    uint64_t (*admit)(void *actor);
    /* Ends what is overdue, but stops dead once it has handled `most`, as if killed. Returns how
     * many it ended; 0 when nothing is left that it knows of. */
    uint64_t (*expire)(void *actor, uint64_t most);
    /* The process that runs admit and expire is killed, and back 200 ms later. */
    void (*restart)(void *actor);
    /* How many are active as the design's own count has it. */
    int64_t (*counted)(void *actor);
    /* Bytes the line takes in the store, beside what was there before (Redis: NULL, INFO tells). */
    double (*bytes)(void *actor);
};

extern const struct way way_limit, way_single, way_stream, way_relational, way_token_state,
    way_set_hash, way_notify, way_log, way_range_scan, way_token_key, way_ours;

/* The id of a visitor, WAY_ID_LENGTH characters and a terminating zero. */
void way_visitor(uint64_t number, char id[WAY_ID_LENGTH + 1]);

/* Ends the program with a sentence. */
void way_die(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

void way_sleep_ms(int64_t ms);

#endif
