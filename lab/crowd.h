/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A crowd: who comes when, in which lane, and what each visitor does. From a file of
 * comma-separated values, or drawn.
 *
 * The file has one arrival per line: the time, and optionally how long the visitor stays once
 * admitted. A first line may name the columns; then `arrival` and `session` are used, in any order,
 * and others are passed over. A time is a number of seconds ("12.5", "1732291200"), a time of day
 * ("9:05:00", "21:05:00.250") or RFC 3339 with an offset, the same kind in all lines; a session is
 * seconds or H:MM:SS, or empty: as described by the options.
 */
#ifndef TL_LAB_CROWD_H
#define TL_LAB_CROWD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/config/settings.h"

#include "lab/model.h"

/* ---- arrivals ---- */

struct tl_arrival {
    int64_t at_ms;      /* since the first one of a file, or the beginning of a crowd */
    int64_t session_ms; /* -1: not given */
    uint32_t row;       /* in the order of the file */
};

struct tl_arrivals {
    size_t n;
    struct tl_arrival *list; /* by time, then row; owned, freed with tl_arrivals_free */
};

/* Reads a file. TL_ERR_INVALID names the line of bad content, TL_ERR_SYSTEM says why it cannot be
 * read. */
bool tl_arrivals_read(const char *path, struct tl_arrivals *arrivals, struct tl_error *err);
/* The same from bytes in memory, which end with a zero and are changed; `name` stands for the file
 * in messages. */
bool tl_arrivals_parse(const char *name, char *bytes, size_t length, struct tl_arrivals *arrivals,
                       struct tl_error *err);
/* Draws the arrivals of a crowd of 1 to TL_ARRIVALS_MOST visitors, over_ms at least 1. The same
 * seed gives the same arrivals. */
void tl_arrivals_draw(const struct tl_crowd *crowd, uint64_t seed, struct tl_arrivals *arrivals);
void tl_arrivals_free(struct tl_arrivals *arrivals);

/* A random number in (0, 1) for one purpose of one visitor: the same for the same arguments,
 * whatever else is drawn. So two simulations that differ in one setting see the same visitors. */
double tl_random_of(uint64_t seed, uint64_t visitor, unsigned purpose);
/* The next random number, and the same in (0, 1): splitmix64 (G. Steele, D. Lea, C. Flood, "Fast
 * splittable pseudorandom number generators", 2014). */
uint64_t tl_random_next(uint64_t *state);
double tl_random_share(uint64_t *state);
/* How long something lasts, from numbers in (0, 1). Exponential with this mean; log-normal with
 * this mean, and a standard deviation that is `spread` of it. */
double tl_exponential(double mean, double u);
double tl_lognormal(double mean, double spread, double u, double v);

/* ---- what each visitor does ---- */

/* What the visitors do. */
struct tl_simulation_visitors {
    int64_t session_ms;  /* mean, for arrivals without a session of their own */
    double spread;       /* standard deviation of sessions, as a share of the mean (log-normal) */
    double no_shows;     /* share of those called who do not come, besides those who gave up */
    int64_t patience_ms; /* mean time until a visitor gives up (exponential); 0: never */
    uint64_t seed;
    double lanes[TL_LANES_MAX]; /* the share that comes in each lane; all 0: all in the first */
};

/* What is drawn for one visitor, by the index of its arrival: how long it waits before giving up
 * (INT64_MAX: never gives up), whether it comes when called, how long it stays, in which lane. */
int64_t tl_visitor_patience_ms(const struct tl_simulation_visitors *visitors, size_t visitor);
bool tl_visitor_comes(const struct tl_simulation_visitors *visitors, size_t visitor);
int64_t tl_visitor_session_ms(const struct tl_simulation_visitors *visitors,
                              const struct tl_arrivals *arrivals, size_t visitor);
unsigned tl_visitor_lane(const struct tl_simulation_visitors *visitors, size_t visitor);

/* Reads "vip=10%,press=0.05": the share of the visitors in each lane of the queue; the others come
 * in the default lane. NULL: all do. TL_ERR_INVALID when a lane is not one of the queue's, is named
 * twice, or the shares are more than everybody. */
bool tl_lanes_shares(const char *text, const struct tl_queue_settings *queue,
                     double shares[TL_LANES_MAX], struct tl_error *err);

/* ---- when ---- */

/* When which visitor has something to do. */
struct tl_due {
    int64_t at_ms;
    size_t visitor;
};

/* A heap, the earliest on top, at the same time the lowest visitor. Zeroed at first; the list is
 * freed with free(). */
struct tl_dues {
    struct tl_due *list; /* the first one is the earliest */
    size_t n, capacity;
};

void tl_dues_push(struct tl_dues *dues, struct tl_due due);
/* Takes the earliest one; there must be one. */
struct tl_due tl_dues_pop(struct tl_dues *dues);
/* Sorts a list by time, then by visitor. */
void tl_dues_sort(struct tl_due *list, size_t n);

/* What is usual: of some times the middle one, the one that nine in ten do not exceed, and the
 * longest; -1: there are none. */
struct tl_times {
    int64_t median_ms, p90_ms, longest_ms;
};
/* Sorts the list. */
struct tl_times tl_times_of(int64_t *list, size_t n);

#endif
