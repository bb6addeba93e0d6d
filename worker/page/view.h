/* SPDX-License-Identifier: Apache-2.0 */
/* What is said of one visitor's place, as JSON (worker/visit/view.h) and on the waiting page; and
 * what only the page says. */
#ifndef TL_PAGE_VIEW_H
#define TL_PAGE_VIEW_H

#include <stdbool.h>
#include <stdint.h>

#include "common/config/mode.h"
#include "common/config/settings.h"
#include "common/line/line.h"

/* What is so of a visitor: TL_PAGE_WAITING and so on. */
#define STATE(name, page, title, status, reason) TL_PAGE_##name,
enum tl_page_state {
#include "worker/page/page_states.def"
    TL_PAGE_STATES
};
#undef STATE

/* How each is called, as page_states.def says. */
struct tl_page_state_names {
    const char *page, *title, *status, *reason;
};

extern const struct tl_page_state_names tl_page_states[TL_PAGE_STATES];

/* A challenge service whose token the page gets. */
struct tl_page_service {
    const char *name;     /* "turnstile", "hcaptcha" or "recaptcha" */
    const char *title;    /* for people */
    const char *site_key; /* public */
    const char *script;   /* its address */
    const char *sources;  /* what the page's policy allows for it, separated by spaces */
    bool scored;          /* it asks the visitor nothing, and gives a score */
};

struct tl_draw_record;
struct tl_event_look;
struct tl_qr;
struct tl_view_shared;

/* Strings are borrowed and may be NULL; numbers that do not apply are 0. */
struct tl_view {
    const char *queue;         /* a valid name */
    const char *visitor;       /* NULL: a page of no place */
    const char *ticket;        /* NULL: not given again. On a page: put into its addresses, for
                                * browsers without cookies; else NULL */
    tl_place place;            /* seq 0: the number is not known */
    struct tl_line_view state; /* UNKNOWN: how it ended is forgotten */
    /* NULL: the queue is not known here, and a place in it is told from the archive, as of as_of_ms
     */
    const struct tl_queue_settings *settings;
    enum tl_queue_mode mode; /* what is so here: passthrough by the file counts */
    enum tl_phase phase;
    uint64_t waiting, active;
    bool has_eta;      /* else there is nothing honest to say */
    bool has_admitted; /* is `admitted` known? */
    bool claimed;      /* ACTIVE: the session is claimed, as far as is known here */
    bool drawing;      /* those who wait are yet to be drawn: nobody has a position */
    bool recovering;   /* the queue recovers from a loss of its data */
    bool unplaced;     /* waits, and the position is not known */
    bool moved;        /* the place is on another device; its state is ENDED */
    bool through;      /* gets in without a place: only the queue and its settings count */
    bool lost;         /* the store lost the place, and it does not come back */
    double eta_low_s, eta_median_s, eta_high_s;
    const char *eta_reason; /* why there is none, or why it grew (tl_eta_reason_name); or NULL */
    uint64_t admitted;      /* of the whole queue, during the last minute */
    const struct tl_draw_record *draw; /* as the store says; of a queue with `order: draw` */
    const char *pass;                  /* ACTIVE; NULL: none */
    const char *reference;             /* the visitor's code; NULL: not told here */
    const char *notice;                /* what the operator says; NULL: nothing */
    int64_t store_ms;                  /* Unix time by the store's clock */
    int64_t as_of_ms;                  /* Unix time when the line was last up to date; 0: it is */
    /* What the JSON views of a queue have in common is kept here, freed with the queue, as long as
     * the version of its weather is this one. NULL: it is not kept. */
    struct tl_view_shared **shared;
    uint64_t weather;

    /* ---- of a page only ---- */

    enum tl_page_state page;           /* of a place tl_view_state */
    const struct tl_event_look *event; /* of the queue; NULL: none */
    const char *invite;                /* put into the page's addresses, until it gave a place */
    bool asks_for_cookies; /* the address says that a cookie was sent, which should come back */
    uint64_t from; /* the first position this browser saw (`?from=`); progress counts from there */
    int64_t poll_after_ms;
    bool no_transfer;           /* the place does not move to another device */
    bool proves;                /* there is a page that proves the place */
    const char *place_name;     /* names the place that the page shows, in its forms; or NULL */
    const char *return_url;     /* only if tl_return_address_allowed */
    const char *return_refused; /* why there is none although the request has one; not shown */
    /* CHALLENGE: the puzzle for the script; and for browsers without it a signed wait of wait_s,
     * which the page's addresses carry as `?solution=`. */
    const char *puzzle;
    unsigned puzzle_parts, puzzle_bits;
    const char *wait;
    int64_t wait_s;
    /* MOVE: the number of this device, and the code once the page was sent and is to be sent again.
     * CODE: the address of the code, and its image. */
    const char *move, *device, *code_address;
    const struct tl_qr *qr;
    const struct tl_page_service *service; /* CHALLENGE, instead of a puzzle; else NULL */
    /* A page for an operator, which asks for nothing (worker/page/preview.h): what it says about
     * its connection, and its name for the page's addresses. NULL: a visitor's page. */
    const char *preview, *preview_name;
};

/* What is so of the place. One that ended before its visitor learned the number is over, and not
 * pending. */
enum tl_page_state tl_view_state(const struct tl_view *view);
/* What those who wait are told of the line, as one of the modes: that of the queue; after closes_at
 * draining or closed, as after_close says. */
enum tl_queue_mode tl_view_told_mode(const struct tl_view *view);

/* The position that a page shows: from 1; 0: nobody knows, or it is not told. */
uint64_t tl_view_position(const struct tl_view *view);
/* The one that the visitor began with, as far as this page knows; 0 likewise. */
uint64_t tl_view_first_position(const struct tl_view *view);

#endif
