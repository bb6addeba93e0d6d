/* SPDX-License-Identifier: Apache-2.0 */
/* What a visitor's browser says of itself: whose page sent the request, which cookies it keeps, who
 * looks at the page, and in which language. */
#ifndef TL_BROWSER_H
#define TL_BROWSER_H

#include <stdbool.h>

#include "common/auth/reference.h"
#include "worker/visit/context.h"

/*
 * What pages of other web sites make a browser send (CSRF, CORS).
 *
 * A POST changes something, so it must come from a page of this site, from one of
 * http.allowed_origins, or from a program, which names no origin. Pages of allowed origins may also
 * read the answers of the API.
 */
/* Do visitors come by https? So says http.public_url, or a trusted proxy of this request. */
bool tl_cross_site_https(const struct tl_visit *visit);
/* Prepares the answer for the page that asks. Call it before anything answers. */
void tl_cross_site_share(const struct tl_worker *worker, struct tl_request *request);
/* Answers a browser that asks whether a page of an allowed origin may send a request (preflight).
 * False: the request is something else. */
bool tl_cross_site_preflight(const struct tl_worker *worker, struct tl_request *request);
/* May the page that sent this request change something? */
bool tl_cross_site_allows(const struct tl_worker *worker, const struct tl_request *request,
                          struct tl_refusal *refusal);

/*
 * The cookie that keeps a visitor's ticket of a queue.
 *
 * Where visitors come by https its name begins with "__Host-": browsers take such a cookie from
 * this host only, over https only, so that no other host of the domain can plant one. Elsewhere it
 * has the name without that. Both names are read: the gateway that asks `check` need not say by
 * which scheme the visitor came.
 */
enum { TL_COOKIE_TEXT_MAX = 512 };

/* The value for Set-Cookie. It lasts for as long as a ticket of this queue may be of use: until the
 * opening, and then as long as a place is kept for a visitor who is away, and as a session may
 * last. At least a day, so that a visitor who comes back later learns how the place ended. Every
 * view of the place restarts that. */
void tl_cookie_write(const struct tl_visit *visit, const char *ticket,
                     char text[TL_COOKIE_TEXT_MAX]);
/* The first valid ticket among all cookies of this queue: other sites of the domain may have set
 * one with the same name. */
bool tl_cookie_ticket(const struct tl_visit *visit, struct tl_ticket *ticket);
/* Does the browser send a cookie of this queue? */
bool tl_cookie_sent(const struct tl_visit *visit);

/*
 * A cookie without a ticket shows that the browser keeps cookies, so that the page's addresses need
 * no ticket. It has the attributes of the ticket's cookie, and ends with the browser.
 */
void tl_cookie_write_probe(const struct tl_visit *visit, char text[TL_COOKIE_TEXT_MAX]);
/* Does the browser send that cookie, or one of this queue? */
bool tl_cookie_works(const struct tl_visit *visit);

/*
 * Which place a page shows. Its forms act on the place of the cookie, which may be another one by
 * then: it came here from another device, or was taken in another tab. So their addresses name the
 * place of the page, `?place=Q5T9-4XDR`: by a code like the reference, but of the place and not
 * only of its visitor, who may have had another one before. It is no credential, and says no more
 * than the reference.
 */
/* The name of the ticket's place for the forms of its page. */
void tl_shown_place_write(const struct tl_visit *visit, char text[TL_REFERENCE_MAX]);
/* Does the form belong to a page of another place than the cookie's? Not where the request names
 * no place, or has no cookie with a ticket. */
bool tl_shown_place_differs(const struct tl_visit *visit);

enum tl_navigation {
    TL_NAVIGATION_PERSON,  /* opens the page in a tab */
    TL_NAVIGATION_AHEAD,   /* a browser fetches it in case it is opened, or only its headers are
                              wanted */
    TL_NAVIGATION_EMBEDDED /* a crawler, or another page that has it as image, frame or script */
};

/* By the headers that browsers send. An old browser, which sends none of them, counts as a person.
 */
enum tl_navigation tl_navigation_of(const struct tl_request *request);
/* The language of the answer. */
const struct tl_catalogue *tl_language_of(const struct tl_visit *visit);

#endif
