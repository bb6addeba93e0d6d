/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON view of a place, as clients see it. */
#ifndef TL_VIEW_H
#define TL_VIEW_H

#include <stddef.h>

#include "common/config/config.h"
#include "common/config/mode.h"
#include "common/line/line.h"
#include "common/store/state.h"
#include "worker/queue/eta.h"
#include "worker/queue/telling.h" /* TL_VIEW_MAX */

struct tl_view {
    const char *queue;
    const char *visitor;
    const char *ticket;        /* NULL: not given again */
    tl_place place;            /* seq 0: the number is not known */
    struct tl_line_view state; /* UNKNOWN: how it ended is forgotten */
    const struct tl_queue_settings *settings;
    enum tl_queue_mode mode; /* what is so here: passthrough by the file counts */
    enum tl_phase phase;
    uint64_t waiting, active;
    const struct tl_eta_range *eta; /* NULL: nothing honest to say */
    const char *eta_reason; /* why not, or why it is longer than it was; NULL: nothing to explain */
    bool has_admitted;      /* is `admitted` known? */
    uint64_t admitted;      /* of the whole queue, during the last minute */
    bool claimed;           /* ACTIVE: the session is claimed, as far as is known here */
    bool drawing;           /* those who wait are yet to be drawn: nobody has a position */
    const struct tl_draw_record *draw; /* as the store says; of a queue with `opening: draw` */
    bool recovering;                   /* the queue recovers from a loss of its data */
    bool moved;                        /* the place is on another device; its state is ENDED */
    bool lost;                         /* the store lost the place, and it does not come back */
    const char *pass;                  /* ACTIVE; NULL: none */
    const char *reference;             /* the visitor's code; NULL: not told here */
    const char *notice;                /* what the operator says; NULL: nothing */
    int64_t store_ms;                  /* Unix time by the store's clock */
    int64_t as_of_ms;                  /* Unix time when the line was last up to date; 0: it is */
};

/* Has the place no number yet? A place that ended before its visitor learned the number is over. */
bool tl_view_pending(const struct tl_view *view);
/* Is no one admitted because the capacity is 0? */
bool tl_view_no_capacity(const struct tl_view *view);
/* What those who wait are told of the line, as one of the modes: that of the queue; after closes_at
 * draining or closed, as at_close says. */
enum tl_queue_mode tl_view_told_mode(const struct tl_view *view);
/* Writes the view; returns its length. */
size_t tl_view_write(const struct tl_view *view, char text[TL_VIEW_MAX]);
/* When to ask again: soon near the front, seldom far back, and spread
 * over time. */
unsigned tl_view_poll_after_ms(const struct tl_view *view);

#endif
