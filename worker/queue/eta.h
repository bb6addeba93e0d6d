/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The wait estimate of one queue: for a position, the median of the wait and a range that holds
 * eight waits in ten. It learns from the events how long sessions last (sessions.h) and how many
 * leave the line, looks ahead from the sessions that run now and from the rules in force
 * (outlook.h), and names why an estimate is missing or has grown.
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
#include "common/wire/events.h"
#include "worker/queue/outlook.h"

struct tl_eta;

/* Who may go in, as the settings say it. */
struct tl_eta_rule {
    bool counted; /* at most `capacity` may be active */
    uint64_t capacity;
    uint64_t admit;   /* a rate: so many... 0: there is none */
    int64_t every_ms; /* ...in this time */
    uint64_t burst;
    bool lumps; /* all at once, every `every` */
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

struct tl_eta *tl_eta_new(void); /* NULL when out of memory */
void tl_eta_free(struct tl_eta **eta);

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
size_t tl_eta_bytes(const struct tl_eta *eta);

#endif
