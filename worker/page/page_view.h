/* SPDX-License-Identifier: Apache-2.0 */
/* What a waiting page shows of one visitor: the input of tl_page_render. */
#ifndef TL_PAGE_VIEW_H
#define TL_PAGE_VIEW_H

#include <stdbool.h>
#include <stdint.h>

enum tl_page_state {
    TL_PAGE_WAITING,
    TL_PAGE_PENDING, /* accepted, no number yet */
    TL_PAGE_ACTIVE,
    TL_PAGE_COMPLETED,
    TL_PAGE_LEFT,
    TL_PAGE_EXPIRED,   /* the session's time ran out */
    TL_PAGE_UNCLAIMED, /* admitted, but did not claim the session in time */
    TL_PAGE_ABSENT,    /* absent for longer than a place is kept */
    TL_PAGE_ENDED,     /* ended; the reason is no longer known */
    TL_PAGE_LOST,      /* the store lost the place, or the generation of the ticket */
    TL_PAGE_REMOVED,   /* by the operator: this visitor cannot join again */
    TL_PAGE_MOVED,     /* the place is on another device */
    TL_PAGE_CODE_OVER, /* a code that moves a place is not good, or not any more */
    TL_PAGE_MOVE,      /* asks whether the place is to come to this device */
    TL_PAGE_CODE,      /* shows a code for another device */
    TL_PAGE_BLOCKED,   /* the operator blocked the address */
    TL_PAGE_CLOSED,    /* there is no such queue */
    TL_PAGE_INVITED,   /* the queue is joined by invitation, and the request had no invite */
    TL_PAGE_FULL,      /* no more visitors may wait */
    TL_PAGE_OUTSIDE,   /* without a place, which is taken with a button */
    TL_PAGE_CHALLENGE, /* a new place needs the solution of a puzzle */
    TL_PAGE_SHUT,      /* the queue takes no new visitors: draining, closed, or its time is over */
    TL_PAGE_SOLD_OUT,  /* likewise, and is sold out */
    TL_PAGE_PASSTHROUGH, /* everyone gets in */
    TL_PAGE_DOWN,        /* the place cannot be looked up or stored right now */
    TL_PAGE_STATES
};

/* A challenge service whose token the page gets. */
struct tl_page_service {
    const char *name;     /* "turnstile", "hcaptcha" or "recaptcha" */
    const char *title;    /* for people */
    const char *site_key; /* public */
    const char *script;   /* its address */
    const char *sources;  /* what the page's policy allows for it, separated by spaces */
    bool scored;          /* it asks the visitor nothing, and gives a score */
};

struct tl_event_look;
struct tl_qr;

/* Strings are borrowed and may be NULL; numbers that do not apply are 0. */
struct tl_page_view {
    enum tl_page_state state;
    const char *queue;                 /* a valid name */
    const struct tl_event_look *event; /* of the queue; NULL: none */
    const char *visitor;               /* lets the script keep the progress of each place apart */
    const char *ticket; /* put into the page's addresses, for browsers without cookies; else NULL */
    const char *invite; /* likewise, until it has given a place */
    bool asks_for_cookies; /* the address says that a cookie was sent, which should come back */
    uint64_t position;     /* from 1; 0: not known */
    uint64_t ahead;
    uint64_t from; /* the first position this browser saw (`?from=`); progress counts from there */
    uint64_t admitted; /* of the whole queue, during the last minute */
    bool has_admitted;
    bool has_eta;
    int64_t eta_low_s, eta_high_s;
    const char *eta_reason; /* why there is none, or why it grew (tl_eta_reason_name); or NULL */
    bool no_transfer;       /* the place does not move to another device */
    const char *closed_text, *sold_out_text; /* the operator's; NULL or "": the built-in ones */
    bool paused, draining, closed, sold_out; /* the mode */
    bool no_capacity;                        /* no one is admitted, as the capacity is 0 */
    bool claimed;                            /* ACTIVE: the session is claimed */
    bool called;           /* has the next turn: goes in as soon as a session ends */
    bool recovering;       /* the queue recovers from a loss of its data */
    bool drawing;          /* the line is drawn at the opening: nobody has a position yet */
    int64_t opens_at_ms;   /* Unix time; not in the future: open */
    int64_t now_ms;        /* Unix time of this view */
    int64_t as_of_ms;      /* when the line was last up to date; 0: it is */
    int64_t expires_at_ms; /* ACTIVE: of the session, or while that is not claimed, of the claim */
    int64_t claim_ttl_ms;  /* how long there is to come in */
    int64_t session_ms;    /* how long a session may last */
    int64_t session_idle_ms; /* it ends sooner after so long without activity; 0: it does not */
    int64_t waiting_ttl_ms;  /* how long a place is kept while its visitor is absent */
    int64_t poll_after_ms;
    const char *notice;         /* the operator's */
    const char *reference;      /* the visitor's code; NULL: none is known */
    const char *place;          /* names the place that the page shows, in its forms; or NULL */
    const char *target_url;     /* the queue's */
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

#endif
