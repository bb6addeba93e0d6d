/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The wait estimate of one queue: for a position, the median of the wait and a range that holds
 * eight waits in ten. It learns from the events how long sessions last and how many leave the line,
 * looks ahead from the sessions that run now and from the rules in force, and names why an estimate
 * is missing or has grown.
 *
 * Where only a rate limits admission, the rate says the wait, from the first visitor on: no longer
 * than as many periods as the position fills. Where capacity limits as well, the sessions count,
 * and the rate is how fast it can be at best.
 *
 * now_ms is local monotonic time everywhere.
 */
#ifndef TL_ETA_H
#define TL_ETA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/line/line.h"
#include "common/line/placemap.h"
#include "common/wire/events.h"
#include "common/wire/place.h"
#include "worker/feed/ingest.h"

/* ---- how long sessions last ---- */

/*
 * Learned from the admissions and ends that were seen: a life table.
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
    TL_LIFETIME_PER_MEAN = 8,   /* this many steps make one mean session */
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

/* ---- how admission goes on from here ---- */

/*
 * For each time ahead, the expected number of ends and of
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
    double left_seen;    /* the visitors who left, on which it rests */
    double admit_per_ms; /* a rate limits admission as well; 0: none */
};

struct tl_outlook {
    bool known;
    double step_ms;
    double excess;                         /* active beyond capacity; below 0: free */
    double variance[TL_LIFETIME_BINS + 1]; /* of the ends up to the end of step i */
    double admitted[TL_LIFETIME_BINS + 1]; /* until then */
    double served[TL_LIFETIME_BINS + 1];   /* positions that are admitted or left by then */
    double per_ms, variance_per_ms;        /* ends, beyond the last step */
    double left_per_ms, left_seen;
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

/* ---- the estimate ---- */

/* The rules of admission, from the settings. */
struct tl_eta_rule {
    bool counted; /* at most `capacity` may be active */
    uint64_t capacity;
    uint64_t admit;   /* a rate: this many... 0: there is none */
    int64_t every_ms; /* ...in this time */
    uint64_t burst;
    bool batches; /* all at once, every `every` */
};

/* Why there is no estimate, or why it is longer than it was. */
enum tl_eta_reason {
    TL_ETA_PLAIN, /* nothing to explain */
    /* no estimate */
    TL_ETA_NOT_KNOWN, /* too little was seen */
    TL_ETA_PAUSED,    /* nobody is admitted: paused, or not open */
    TL_ETA_NO_CAPACITY,
    TL_ETA_STALLED, /* visitors could be admitted, but are not */
    /* longer than it was */
    TL_ETA_CAPACITY_LOWERED,
    TL_ETA_RATE_LOWERED,
    TL_ETA_MORE_AHEAD, /* others took places ahead */
    TL_ETA_SLOWER,     /* admission is slower than it was */
};

/* The reason in a view; NULL: nothing to explain. */
const char *tl_eta_reason_name(enum tl_eta_reason reason);

enum { TL_ETA_STEPS = 13 }; /* of 5 s: a minute, and the one that is not over */

/* What the estimate of a queue rests on; written in eta.c and sessions.c. Zeroed: nothing is known.
 * Clear sessions.running to free its memory. */
struct tl_eta {
    int64_t seen_since_ms; /* every event since then was seen; 0: none yet */
    int64_t step;          /* the newest: admitted[step % TL_ETA_STEPS] */
    uint64_t admitted[TL_ETA_STEPS];
    struct tl_sessions sessions;
    struct tl_eta_rule rule;
    bool open;
    uint64_t waiting, active;
    int64_t now_ms;       /* of the last step */
    int64_t possible_ms;  /* since then visitors could be admitted, but none was */
    double left, left_ms; /* visitors who left the line, and the time that all together waited */
    enum tl_eta_reason grew;
    int64_t grew_ms;
    struct tl_outlook outlook;
    int64_t computed_ms;
    bool changed;  /* the line, since then */
    bool outdated; /* a rule changed since then */
};

/* From now on this rule is in force. */
void tl_eta_set_rule(struct tl_eta *eta, const struct tl_eta_rule *rule, int64_t now_ms);
/* From now on admission is possible, or it is not: the queue is paused or not open. */
void tl_eta_set_open(struct tl_eta *eta, bool open, int64_t now_ms);
/* The line was loaded, at first or after events were missed. How long sessions last stays known. */
void tl_eta_set_line(struct tl_eta *eta, const struct tl_line *line, int64_t now_ms);
/* An entry of the events stream that the line has just taken. */
void tl_eta_apply(struct tl_eta *eta, const struct tl_event_entry *entry, int64_t now_ms);
/* An estimate grew for this reason. It is named for a minute. */
void tl_eta_grew(struct tl_eta *eta, enum tl_eta_reason reason, int64_t now_ms);

/* The wait until the position-th admission from now (position >= 1). False: not known, or nothing
 * honest to say. *reason says why; if true, why it is longer than it was, if it is. Computes the
 * outlook again when it is out of date: O(1), tens of microseconds, at most 10 times a second;
 * otherwise O(1): once in a while some microseconds, mostly less than one. */
bool tl_eta_estimate(struct tl_eta *eta, uint64_t position, int64_t now_ms,
                     struct tl_eta_range *range, enum tl_eta_reason *reason);
/* How many visitors were admitted during the last minute (of 60 to 65 s), as a page shows of the
 * pace; false: not all of it was seen. */
bool tl_eta_admitted(const struct tl_eta *eta, int64_t now_ms, uint64_t *count);

/* ---- promises ---- */

/*
 * What visitors were told about their wait, against what came true: for a bounded sample of those
 * who wait, eight in each class of position (1 to 4, 5 to 19, 20 to 49, 50 and more). The result is
 * the published error of the running queue. The same sample notices when an estimate grows, and
 * why.
 */

enum { TL_PROMISES_CLASSES = 4, TL_PROMISES_PER_CLASS = 8 };

/* Read everywhere, written in promises.c only, but for what was reported of `news`. A zeroed one is
 * empty, but for `random`. */
struct tl_promises {
    struct tl_promise {
        tl_place place; /* 0: free */
        int64_t told_ms;
        struct tl_eta_range range;
        uint64_t ahead; /* when last seen */
        double least_s; /* the shortest median since, or since it last grew */
    } list[TL_PROMISES_CLASSES][TL_PROMISES_PER_CLASS];
    uint64_t random;   /* chooses who is sampled */
    unsigned waiting;  /* promises in the list */
    int64_t ticked_ms; /* 0: never */
    /* Fading over the last hundred or so that came true: */
    struct tl_promises_score {
        uint64_t judged; /* how many came true so far */
        double inside;   /* share within the range; fading */
        double error;    /* mean distance from the median over the wait; fading */
    } score;
    /* What came true and was not added to the totals in the store yet. */
    struct tl_promises_news {
        int64_t since_ms; /* when the oldest came true; 0: there are none */
        /* All; before and after the range; distances from the median in percent of the wait, added
         * up, each at most 1,000. */
        uint64_t counts[TL_PROMISED_FIELDS];
        uint64_t measured[TL_PROMISED_FIELDS]; /* of these, what the metrics have */
    } news;
};

/* Forgets what was told: the line is another one. */
void tl_promises_drop(struct tl_promises *promises);

/* An entry of the events stream that the line and the estimate have just taken: some of those who
 * were told may have been admitted. */
void tl_promises_apply(struct tl_promises *promises, const struct tl_line *line,
                       const struct tl_event_entry *entry, int64_t now_ms);
/* Samples more of those who wait, at most one of each class, and compares what the others would be
 * told now with what they were told. Once a second; calls in between do nothing. */
void tl_promises_tick(struct tl_promises *promises, struct tl_eta *eta, const struct tl_line *line,
                      int64_t now_ms);

#endif
