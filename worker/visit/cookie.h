/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cookie that keeps a visitor's ticket of a queue.
 *
 * Where visitors come by https its name begins with "__Host-": browsers take such a cookie from
 * this host only, over https only, so that no other host of the domain can plant one. Elsewhere it
 * has the name without that. Both names are read: a visitor of a release before this one may hold
 * the plain one.
 */
#ifndef TL_COOKIE_H
#define TL_COOKIE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/auth/reference.h"
#include "common/auth/ticket.h"
#include "common/config/config.h"
#include "worker/http/request.h"
#include "worker/visit/context.h"

enum { TL_COOKIE_TEXT_MAX = 512 };

/* For how long from now a ticket of this queue may be of use, in seconds: until the opening, and
 * then as long as a place is kept for a visitor who is away, and as a session may last. At least a
 * day, so that a visitor who comes back later learns how the place ended. */
int64_t tl_cookie_life_s(const struct tl_queue_settings *settings, int64_t store_ms);
/* The value for Set-Cookie. life_s: of tl_cookie_life_s; every view of the place restarts it. */
void tl_cookie_write(const struct tl_worker *worker, const struct tl_request *request,
                     const char *queue, const char *ticket, int64_t life_s,
                     char text[TL_COOKIE_TEXT_MAX]);
/* The first valid ticket among all cookies of this queue: other sites of the domain may have set
 * one with the same name. *sent: was there any such cookie? */
bool tl_cookie_ticket(const struct tl_worker *worker, const struct tl_request *request,
                      const char *queue, struct tl_ticket *ticket, bool *sent);
/* Does the browser send a cookie of this queue? */
bool tl_cookie_sent(const struct tl_request *request, const char *queue);

/*
 * A cookie without a ticket shows that the browser keeps cookies, so that the page's addresses need
 * no ticket. It has the attributes of the ticket's cookie, and ends with the browser.
 */
void tl_cookie_write_probe(const struct tl_worker *worker, const struct tl_request *request,
                           char text[TL_COOKIE_TEXT_MAX]);
/* Does the browser send that cookie, or one of this queue? */
bool tl_cookie_works(const struct tl_request *request, const char *queue);

/*
 * Which place a page shows. Its forms act on the place of the cookie, which may be another one by
 * then: it came here from another device, or was taken in another tab. So their addresses name the
 * place of the page, `?place=Q5T9-4XDR`: by a code like the reference, but of the place and not
 * only of its visitor, who may have had another one before. It is no credential, and says no more
 * than the reference.
 */
/* The name of the place for the forms of its page. */
void tl_shown_place_write(const struct tl_worker *worker, const char *queue, const char *visitor,
                          tl_place place, char text[TL_REFERENCE_MAX]);
/* Does the form belong to a page of another place than the cookie's? Not where the request names
 * no place, or has no cookie with a ticket. */
bool tl_shown_place_differs(const struct tl_worker *worker, const struct tl_request *request,
                            const char *queue);

#endif
