/* SPDX-License-Identifier: Apache-2.0 */
/* What the wait estimate rests on (worker/queue/eta.h): how long sessions last, and how admission
 * goes on from here. */
#ifndef TL_OUTLOOK_H
#define TL_OUTLOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/line/placemap.h"
#include "common/wire/place.h"

/*
 * How long sessions last, learned from the admissions and ends that were seen: a life table.
 *
 * The hazard of a session at each age is the number of ends seen at that age over the time that
 * sessions were seen at that age (E. Kaplan, P. Meier, "Nonparametric estimation from incomplete
 * observations", 1958; with delayed entry). So sessions that still run count for the time they have
 * run, and ends older than the window count neither as ends nor as time. Ages with few ends are
 * taken together. When sessions become clearly shorter or longer, those before are forgotten.
 *
 * Memory and time are bounded: of a large queue, one in 2^n sessions is followed.
 */

enum {
    TL_LIFETIME_BINS = 64,      /* ages, and as many steps ahead */
    TL_LIFETIME_PER_MEAN = 8,   /* so many steps make one mean session */
    TL_SESSIONS_ENDED_MIN = 5,  /* fewer ends are too few to say anything */
    TL_SESSIONS_ENDED_MAX = 512 /* ends remembered */
};

/* Written in sessions.c only, but that clearing `running` forgets which sessions run (not how long
 * they last) and frees its memory. A zeroed one has seen nothing. */
struct tl_sessions {
    struct tl_placemap running; /* place -> local ms + 1 of its start; 0: not known */
    unsigned sparse;            /* one in 2^sparse seqs is followed */
    struct tl_session_ended {
        int64_t start_ms, end_ms;
    } ended[TL_SESSIONS_ENDED_MAX]; /* a ring */
    size_t first, n;
    uint64_t seen;    /* ends so far */
    bool begun;       /* the first session has */
    int64_t since_ms; /* every end of a session followed since then is in the ring */
};

/* A session that began at an unknown time, before we looked. */
void tl_sessions_found(struct tl_sessions *sessions, tl_place place);
/* now_ms is local monotonic time everywhere. */
void tl_sessions_started(struct tl_sessions *sessions, tl_place place, int64_t now_ms);
void tl_sessions_ended(struct tl_sessions *sessions, tl_place place, int64_t now_ms);

struct tl_lifetimes {
    double step_ms;                            /* width of a bin */
    double mean_ms, spread;                    /* of a session; variance over squared mean */
    double ended;                              /* ends that this rests on */
    double survival[2 * TL_LIFETIME_BINS + 1]; /* is a session older than i steps? survival[0]: 1 */
    double ages[TL_LIFETIME_BINS + 1]; /* share of the running sessions that is i steps old */
    double unknown;                    /* share whose age is not known */
};

/* Computes the life table. False while fewer than TL_SESSIONS_ENDED_MIN ends were seen, or fewer
 * than a fifth of those that run. */
bool tl_sessions_look(const struct tl_sessions *sessions, int64_t now_ms,
                      struct tl_lifetimes *lifetimes);

/*
 * How admission goes on from here: for each time ahead, the expected number of ends and of
 * admissions, and how much the number of ends varies.
 *
 * Each running session ends according to its age (above); each end lets one more
 * visitor in, whose session ends in turn: a renewal process. Its mean and variance follow from the
 * renewal equations (D. Cox, "Renewal Theory", 1962), computed in steps of an eighth of a mean
 * session up to eight mean sessions ahead, and by their limits beyond. What is known to bend it
 * counts at once: sessions beyond a lowered capacity end before anybody is admitted, free capacity
 * is filled at once, and a rate is the fastest it can go.
 *
 * Visitors who leave shorten the wait of those behind: with admissions a(t), and each one ahead
 * leaving at rate r, the k-th is admitted when the integral of exp(r t) a(t) reaches k.
 */

/* Seconds; eight in ten waits end between low and high, half of them by median. */
struct tl_eta_range {
    double low_s, median_s, high_s;
};

/* Of the normal distribution: one in ten lies beyond it on either side. */
#define TL_OUTLOOK_Z 1.2815515655

enum { TL_OUTLOOK_NODES = 64 };

struct tl_outlook_input {
    double waiting, active, capacity;
    double left_per_ms;  /* how likely one who waits leaves within a ms */
    double left_seen;    /* that rests on so many who left */
    double admit_per_ms; /* a rate limits admission as well; 0: none */
};

struct tl_outlook {
    bool known;
    double step_ms;
    double excess;                         /* active beyond capacity; below 0: free */
    double ends[TL_LIFETIME_BINS + 1];     /* up to the end of step i */
    double variance[TL_LIFETIME_BINS + 1]; /* of these */
    double admitted[TL_LIFETIME_BINS + 1]; /* likewise */
    double served[TL_LIFETIME_BINS + 1];   /* positions that are admitted or left by then */
    double per_ms, variance_per_ms;        /* ends, beyond the last step */
    double admit_per_ms, left_per_ms, left_seen;
    double spread, observations;
    double log_ratio; /* of the positions of two nodes */
    struct tl_outlook_node {
        bool known; /* computed when it is asked for */
        double position;
        struct tl_eta_range range;
    } nodes[TL_OUTLOOK_NODES];
};

void tl_outlook_compute(struct tl_outlook *outlook, const struct tl_lifetimes *lifetimes,
                        const struct tl_outlook_input *input);

/* The wait until the position-th admission (position >= 1), from a table: computed for the first 16
 * positions, and behind them for 48 nodes up to the end of the line; what is between these by
 * interpolation, within 1 % or a second of what would be computed, except where that jumps. high_s
 * may be INFINITY: never, as things are. */
struct tl_eta_range tl_outlook_range(struct tl_outlook *outlook, double position);

#endif
