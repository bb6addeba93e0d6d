/*
 * The waiting page as pure functions: from a visitor's state to HTML. No HTTP, no clock, no store.
 *
 * The page works without its script: it is whole as it is rendered, and refreshes itself by <meta
 * http-equiv="refresh">. The script (worker/web/page.js) keeps the same page current.
 */
#ifndef TL_PAGE_H
#define TL_PAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/text.h"

#include "worker/page/brand.h"
#include "worker/page/language.h"
#include "worker/page/template.h"

/* Headers of the page, beside `Cache-Control: no-store` and `X-Content-Type-Options: nosniff`. */
#define TL_PAGE_POLICY                                                                             \
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "                    \
    "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
#define TL_PAGE_REFERRER_POLICY "same-origin"

#define TL_PAGE_REFRESH_MIN_S 5 /* never faster without the script */
#define TL_PAGE_GO_ON_S       3 /* from "it is your turn" until the page goes on by itself */

enum tl_page_state {
    TL_PAGE_WAITING,
    TL_PAGE_PENDING, /* accepted, no number yet */
    TL_PAGE_ACTIVE,
    TL_PAGE_COMPLETED,
    TL_PAGE_LEFT,
    TL_PAGE_EXPIRED,   /* the session's time was over */
    TL_PAGE_UNCLAIMED, /* admitted, but never showed up */
    TL_PAGE_ABSENT,    /* was away for longer than a place is kept */
    TL_PAGE_ENDED,     /* over, and nobody knows why any more */
    TL_PAGE_LOST,      /* the ticket is of an earlier life of the queue */
    TL_PAGE_CLOSED,    /* there is no such queue */
    TL_PAGE_INVITED,   /* this queue is joined by invitation, and there was none */
    TL_PAGE_DOWN,      /* the place cannot be looked up or kept now */
    TL_PAGE_STATES
};

/* Strings are borrowed and may be NULL; numbers that do not apply are 0. */
struct tl_page_view {
    enum tl_page_state state;
    const char *queue;   /* a valid name */
    const char *visitor; /* ties the script's progress to this place */
    const char
        *ticket; /* carried in the page's addresses, for browsers without cookies; else NULL */
    uint64_t position; /* from 1; 0: not known */
    uint64_t ahead;
    uint64_t from; /* the first position seen (`?from=`), from where progress counts */
    bool has_eta;
    int64_t eta_low_s, eta_high_s;
    bool paused;
    int64_t opens_at_ms;    /* Unix time; not in the future: open */
    int64_t now_ms;         /* Unix time of this view */
    int64_t expires_at_ms;  /* ACTIVE */
    int64_t waiting_ttl_ms; /* how long a place is kept without a sign of life */
    int64_t poll_after_ms;
    const char *notice;     /* the operator's */
    const char *target_url; /* the queue's */
    const char *return_url; /* only if tl_return_address_allowed */
};

/* Appends the page. out->failed when memory ran out. */
void tl_page_render(const struct tl_page_view *view, const struct tl_brand *brand,
                    enum tl_language language, struct tl_text *out);

/* Appends the page's own address with what it carries (return, ticket, from): "/q/concert?from=12".
 * `action` is "" or
 * "/join", "/leave". This is also where POST /q/{queue}/join and /leave send the browser afterwards
 * (303). */
void tl_page_address(const struct tl_page_view *view, const char *action, struct tl_text *out);

/* Parses a template that may use the values of this page. */
struct tl_template *tl_page_template(const char *label, const void *bytes, size_t length,
                                     struct tl_error *err);

/* Every name a template may use, one after the other; NULL past the end. For the documentation. */
const char *tl_page_template_name(size_t i);

#endif
