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
#include "common/wire/names.h"
#include "common/wire/place.h"
#include "common/wire/weights.h"

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
/* The same from bytes in memory; `name` stands for the file in messages. */
bool tl_arrivals_parse(const char *name, const char *bytes, size_t length,
                       struct tl_arrivals *arrivals, struct tl_error *err);
/* Draws the arrivals of a crowd of 1 to TL_ARRIVALS_MOST visitors, over_ms at least 1. The same
 * seed gives the same arrivals. */
void tl_arrivals_draw(const struct tl_crowd *crowd, uint64_t seed, struct tl_arrivals *arrivals);
void tl_arrivals_free(struct tl_arrivals *arrivals);

/* A random number in (0, 1) for one purpose of one visitor: the same for the same arguments,
 * whatever else is drawn. So two simulations that differ in one setting see the same visitors. */
double tl_plan_random(uint64_t seed, uint64_t visitor, unsigned purpose);

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

/* ---- lanes ---- */

/* The lanes of a queue. */
struct tl_plan_lanes {
    size_t n; /* at least 1 */
    char names[TL_LANES_MAX][TL_LANE_NAME_MAX + 1];
    struct tl_weights weights; /* none, or one for each lane */
    unsigned standard;         /* the lane of those for whom none is named */
};

/* Reads "vip=10%,press=0.05": the share of the visitors in each lane; the others come in the
 * standard lane. NULL: all do. TL_ERR_INVALID when a lane is not one of the queue's, is named
 * twice, or the shares are more than everybody. */
bool tl_plan_lanes_shares(const char *text, const struct tl_plan_lanes *lanes,
                          double shares[TL_LANES_MAX], struct tl_error *err);

/* What the visitors of one lane met. */
struct tl_lane_waits {
    uint64_t arrived;
    uint64_t admitted; /* of those who had not given up */
    int64_t median_ms; /* of their waits; -1: nobody was admitted */
    int64_t most_ms;   /* nine in ten waited no longer */
    uint64_t passed;   /* the most visitors of other lanes admitted in a row while it had some */
};

/* Sets admitted, median_ms and most_ms; sorts the waits. */
void tl_lane_waits_sum(struct tl_lane_waits *lane, int64_t *waits_ms, size_t n);

/* Was the lane passed by ten times as often as its weight allows? Lanes without weights count as
 * lanes of equal weights. */
bool tl_lane_starved(const struct tl_plan_lanes *lanes, unsigned lane,
                     const struct tl_lane_waits *waits);

#endif
