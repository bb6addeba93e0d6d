/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was seen in a rehearsal, and what it says about the settings. Pure computation. Times are in
 * ms since the rehearsal began, as they passed, whatever its speed; -1 where something did not
 * happen.
 */
#ifndef TL_LAB_FIGURES_H
#define TL_LAB_FIGURES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/config/settings.h"
#include "common/words/words.h"

#include "lab/simulate.h"

enum tl_fate {
    TL_FATE_OPEN,    /* not known: the rehearsal ended before */
    TL_FATE_SERVED,  /* came when called, and completed */
    TL_FATE_CUT_OFF, /* came, and the session ended at its limit */
    TL_FATE_NO_SHOW, /* did not come when called */
    TL_FATE_GAVE_UP, /* closed the page while waiting */
    TL_FATE_LEFT,    /* gave up with a word */
    TL_FATE_REFUSED, /* could not join */
    TL_FATE_DROPPED, /* was told that the place had ended */
    TL_FATE_FAILED,  /* errors, again and again */
    TL_FATES_N,
};

/* One visitor. */
struct tl_rehearsed {
    enum tl_fate fate;
    unsigned lane;
    int64_t joins_ms;    /* the first request was sent */
    int64_t joined_ms;   /* the place was told */
    int64_t called_ms;   /* the admission was told */
    int64_t admitted_ms; /* the end of the claim time at the admission, by the store's clock: orders
                            admissions */
    int64_t promised_ms; /* the first range of the wait was told... */
    int64_t low_ms, high_ms; /* ...and this was it */
    int64_t gone_ms;         /* the fate was known */
};

enum { TL_REASONS_MOST = 16, TL_REASON_MAX = 64 };

/* How often something happened, by its reason. */
struct tl_reasons {
    size_t n;
    struct tl_found_reason {
        char name[TL_REASON_MAX];
        uint64_t count;
    } list[TL_REASONS_MOST]; /* the last one holds all that do not fit */
};
void tl_reasons_count(struct tl_reasons *reasons, const char *name);

struct tl_rehearsal {
    size_t n;
    struct tl_rehearsed *visitors; /* in the order of their arrivals; owned by the caller */
    struct tl_reasons refused, errors;
    uint64_t requests;
    uint64_t longest_line, most_active; /* of what visitors were told */
    int64_t longest_line_at_ms;
    uint64_t most_on_the_site;  /* visitors at once, as they know it */
    uint64_t set_back;          /* times a visitor was told a higher position than before */
    int64_t opened_ms;          /* who joins before may be drawn */
    int64_t line_empty_from_ms; /* -1: a visitor waits */
    int64_t end_ms;
    bool stopped;  /* by the operator */
    bool overtime; /* it ran out of time */
};

struct tl_figures {
    uint64_t fates[TL_FATES_N];
    uint64_t joined;
    struct tl_met all, lanes[TL_LANES_MAX]; /* a wait is that of a visitor who was called */
    uint64_t per_period;                    /* the most admissions in any rate.every */
    double per_period_average;              /* from the first admission to the last; 0: too few */
    uint64_t overtaken; /* visitors admitted before another who had joined that lane earlier */
};

/* settings: those of the scratch queue. */
void tl_figures_compute(const struct tl_rehearsal *rehearsal,
                        const struct tl_queue_settings *settings, struct tl_figures *figures);

/* What the settings promise and the rehearsal did not keep. */
void tl_figures_judge(const struct tl_rehearsal *rehearsal,
                      const struct tl_queue_settings *settings, const struct tl_figures *figures,
                      struct tl_sentences *broken);

#endif
