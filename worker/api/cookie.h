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

#include "common/auth/ticket.h"
#include "worker/api/context.h"
#include "worker/http/request.h"

enum { TL_COOKIE_TEXT_MAX = 512 };

/* The value for Set-Cookie. */
void tl_cookie_write(const struct tl_api *api, const struct tl_request *request, const char *queue,
                     const char *ticket, char text[TL_COOKIE_TEXT_MAX]);
/* The first valid ticket among all cookies of this queue: other sites of the domain may have set
 * one with the same name. *sent: was there any such cookie? */
bool tl_cookie_ticket(const struct tl_api *api, const struct tl_request *request, const char *queue,
                      struct tl_ticket *ticket, bool *sent);
/* Does the browser send a cookie of this queue? */
bool tl_cookie_sent(const struct tl_request *request, const char *queue);

#endif
