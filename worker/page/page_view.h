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
    TL_PAGE_LOST,      /* the ticket belongs to an earlier generation of the queue */
    TL_PAGE_CLOSED,    /* there is no such queue */
    TL_PAGE_INVITED,   /* the queue is joined by invitation, and the request had no invite */
    TL_PAGE_DOWN,      /* the place cannot be looked up or stored right now */
    TL_PAGE_STATES
};

/* Strings are borrowed and may be NULL; numbers that do not apply are 0. */
struct tl_page_view {
    enum tl_page_state state;
    const char *queue;   /* a valid name */
    const char *visitor; /* lets the script keep the progress of each place apart */
    const char *ticket; /* put into the page's addresses, for browsers without cookies; else NULL */
    uint64_t position;  /* from 1; 0: not known */
    uint64_t ahead;
    uint64_t from; /* the first position this browser saw (`?from=`); progress counts from there */
    bool has_eta;
    int64_t eta_low_s, eta_high_s;
    bool paused;
    int64_t opens_at_ms;    /* Unix time; not in the future: open */
    int64_t now_ms;         /* Unix time of this view */
    int64_t expires_at_ms;  /* ACTIVE */
    int64_t waiting_ttl_ms; /* how long a place is kept while its visitor is absent */
    int64_t poll_after_ms;
    const char *notice;     /* the operator's */
    const char *target_url; /* the queue's */
    const char *return_url; /* only if tl_return_address_allowed */
};

#endif
