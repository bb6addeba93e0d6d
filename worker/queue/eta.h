/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The wait estimate of one queue: for a position, the median of the wait and a range that holds
 * eight waits in ten. It learns from the events how long sessions last and how many leave
 * the line, looks ahead from the sessions that run now and from the rules in force (outlook.h), and
 * names why an estimate is missing or has grown.
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
#include "worker/feed/questions.h"
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

/* ---- promises ---- */

/*
 * What visitors were told about their wait, against what came true: for a bounded sample of those
 * who wait, eight in each class of position (1 to 4, 5 to 19, 20 to 49, 50 and more). The result is
 * the published error of the running queue. The same sample notices when an estimate grows, and
 * why.
 *
 * now_ms is local monotonic time everywhere.
 */

enum { TL_PROMISES_CLASSES = 4, TL_PROMISES_PER_CLASS = 8 };
enum tl_promises_reader { TL_PROMISES_METRICS, TL_PROMISES_STORE, TL_PROMISES_READERS };

/* Read everywhere, written in promises.c only. A zeroed one is empty, but for `random`. */
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
        uint64_t judged; /* so many came true so far */
        double inside;   /* share within the range; fading */
        double error;    /* mean distance from the median over the wait; fading */
    } score;
    /* What came true since this reader of counters last asked. */
    struct tl_promises_news {
        int64_t since_ms; /* when the oldest came true; 0: there are none */
        /* All; before and after the range; distances from the median in percent of the wait, added
         * up, each at most 1,000. */
        uint64_t counts[TL_PROMISED_FIELDS];
    } news[TL_PROMISES_READERS];
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

/* What this reader has not had yet; from now on it has. */
struct tl_promises_news tl_promises_take(struct tl_promises *promises,
                                         enum tl_promises_reader reader);

#endif
