/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A discrete-event simulation of one queue: arrivals, the line, admission, sessions. The same input
 * gives the same result. Time is in ms since the first arrival (or the beginning of the crowd).
 *
 * Each lane is first come, first served; between lanes it is as in common/line/turns.h. Within one
 * ms sessions end first, then visitors arrive, then the first of the line are admitted, then absent
 * visitors are dropped.
 *
 * A visitor who gives up closes the page without a word. The place stays until waiting_ttl has
 * passed; one called before that does not come, and the slot is taken until claim_ttl has passed.
 */
#ifndef TL_LAB_SIMULATE_H
#define TL_LAB_SIMULATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/config/settings.h"
#include "common/words/chart.h"

#include "lab/crowd.h"

/* From `now_ms` on these numbers wait and are active; arrived and admitted are those of this
 * moment. now_ms is at least 0 and never goes back. */
void tl_series_note(struct tl_series *series, int64_t now_ms, const struct tl_series_point *point);

/* What the visitors of a lane met, or those of all lanes. */
struct tl_met {
    uint64_t arrived;
    uint64_t admitted;     /* of those who had not given up */
    struct tl_times waits; /* theirs */
    uint64_t passed_by; /* the most visitors of other lanes admitted in a row while it had some */
    uint64_t promises,
        promises_kept; /* of a rehearsal: ranges told, and those in which the wait ended */
    int64_t told_ms;   /* the middle of the first range told, the median; -1: none */
    int64_t true_ms;   /* how long those visitors waited from then on, the median */
};

/* Was the lane passed by ten times as often as its weight allows? Lanes without weights count as
 * lanes of equal weights. */
bool tl_lane_starved(const struct tl_queue_settings *queue, unsigned lane,
                     const struct tl_met *met);

/* What became of one visitor. */
struct tl_simulation_visitor {
    int64_t admitted_ms; /* -1: was not */
    int64_t freed_ms;    /* when the slot became free again; only of an admitted one */
    unsigned lane;
    bool came;    /* when called */
    bool gave_up; /* before that */
};

struct tl_simulation {
    uint64_t arrived; /* = served + no_shows + gave_up + refused + still_waiting */
    uint64_t served, no_shows, gave_up, refused, still_waiting;
    uint64_t cut_off; /* sessions that ended at the limit */
    uint64_t longest_line;
    int64_t longest_line_at_ms;
    uint64_t most_active;       /* slots taken at once */
    uint64_t most_on_the_site;  /* visitors at once */
    int64_t line_empty_from_ms; /* for good; -1: it never is */
    int64_t line_ms;            /* how long there was a line */
    int64_t end_ms;             /* of the last session */
    /* From the opening to the last admission; 0 without a capacity. Shares of all slot time. */
    double slots_empty, slots_empty_in_line, slots_no_shows;
    struct tl_met all, lanes[TL_LANES_MAX];
    struct tl_series series;
    struct tl_simulation_visitor *visitors; /* in the order of the arrivals; owned */
};

/* Runs until all visitors are gone, nothing more can happen, or ten years have passed. Of the
 * settings opens_at_ms is in the time of the simulation. All is borrowed. Free the result with
 * tl_simulation_free. */
struct tl_simulation *tl_simulation_run(const struct tl_queue_settings *settings,
                                        const struct tl_simulation_visitors *visitors,
                                        const struct tl_arrivals *arrivals);
void tl_simulation_free(struct tl_simulation **simulation);

#endif
