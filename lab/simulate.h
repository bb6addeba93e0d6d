/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A discrete-event simulation of one queue: arrivals, the line, admission, sessions. The same input
 * gives the same result. Time is in ms since the first arrival (or the beginning of the crowd).
 *
 * Each lane is first come, first served; between lanes it is as in common/line/turns.h. Within one
 * ms sessions end first, then visitors arrive, then the first of the line are admitted, then absent
 * visitors are dropped.
 *
 * Who gives up closes the page without a word. The place stays until waiting_ttl has passed; who is
 * called before that does not come, and the slot is taken until claim_ttl has passed.
 */
#ifndef TL_LAB_SIMULATE_H
#define TL_LAB_SIMULATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/config/settings.h"

#include "lab/arrivals.h"
#include "lab/lanes.h"
#include "lab/series.h"

/* The settings of the queue. Capacity and admit up to ten million, times up to seven days. */
struct tl_simulation_settings {
    enum tl_policy policy;
    uint64_t capacity;        /* policies counter and both */
    uint64_t admit;           /* policies rate and both: so many... */
    int64_t every_ms;         /* ...in this time */
    bool lumps;               /* all of them at once, `every` apart; else evenly */
    uint64_t burst;           /* evenly: so many more after a pause */
    int64_t session_limit_ms; /* no session is longer */
    int64_t claim_ttl_ms, waiting_ttl_ms;
    int64_t opens_ms;     /* no admission before */
    uint64_t max_waiting; /* who comes to a longer line is refused; 0: no limit */
    struct tl_plan_lanes lanes;
};

/* Those of a plan, opened at once. */
void tl_simulation_settings_planned(const struct tl_plan_input *input, const struct tl_plan *plan,
                                    struct tl_simulation_settings *settings);

/* What the visitors do. */
struct tl_simulation_visitors {
    int64_t session_ms;  /* mean, for arrivals without a session of their own */
    double spread;       /* standard deviation of sessions, as a share of the mean (log-normal) */
    double no_shows;     /* share of those called who do not come, besides those who gave up */
    int64_t patience_ms; /* mean time until a visitor gives up (exponential); 0: never */
    uint64_t seed;
    double lanes[TL_LANES_MAX]; /* the share that comes in each lane; all 0: all in the first */
};

/* What became of one visitor. */
struct tl_simulation_visitor {
    int64_t admitted_ms; /* -1: was not */
    int64_t freed_ms;    /* when the slot became free again; only of an admitted one */
    bool came;           /* when called */
    bool gave_up;        /* before that */
};

struct tl_simulation {
    uint64_t arrived; /* = served + no_shows + gave_up + refused + waiting */
    uint64_t served, no_shows, gave_up, refused, waiting;
    uint64_t cut_off; /* sessions that ended at the limit */
    uint64_t longest_line;
    int64_t longest_line_ms; /* when */
    uint64_t most_active;    /* slots taken at once */
    uint64_t most_present;   /* visitors on the site at once */
    /* Waits of those served, in ms: the middle one, the one that 19 of 20 do not exceed, the
     * longest. */
    int64_t wait_median_ms, wait_most_ms, wait_longest_ms;
    int64_t last_empty_ms; /* since when the line is empty for good; -1: it never is */
    int64_t line_ms;       /* how long there was a line */
    /* From the opening to the last admission; 0 without a capacity. Shares of all slot time. */
    double slots_empty, slots_empty_in_line, slots_no_shows;
    int64_t end_ms; /* of the last session */
    struct tl_lane_waits lanes[TL_LANES_MAX];
    struct tl_series series;
    struct tl_simulation_visitor *visitors; /* in the order of the arrivals; owned */
};

/* What is drawn for one visitor, by the index of its arrival: how long it waits before giving up
 * (INT64_MAX: never gives up), whether it comes when called, how long it stays, in which lane. */
int64_t tl_visitor_patience_ms(const struct tl_simulation_visitors *visitors, size_t visitor);
bool tl_visitor_comes(const struct tl_simulation_visitors *visitors, size_t visitor);
int64_t tl_visitor_session_ms(const struct tl_simulation_visitors *visitors,
                              const struct tl_arrivals *arrivals, size_t visitor);
unsigned tl_visitor_lane(const struct tl_simulation_visitors *visitors, size_t visitor);

/* Runs until all visitors are gone, nothing more can happen, or ten years have passed. arrivals is
 * borrowed. Free the result with tl_simulation_free; NULL when out of memory. */
struct tl_simulation *tl_simulation_run(const struct tl_simulation_settings *settings,
                                        const struct tl_simulation_visitors *visitors,
                                        const struct tl_arrivals *arrivals, struct tl_error *err);
void tl_simulation_free(struct tl_simulation **simulation);

#endif
