/* SPDX-License-Identifier: Apache-2.0 */
/* The head of an admin request: what decides who may do what. All texts are borrowed from the
 * connection, and stay while the request is in work. */
#ifndef TL_ADMIN_HEAD_H
#define TL_ADMIN_HEAD_H

#include <stdbool.h>

#include <microhttpd.h>

#include "common/base/net.h"

/* The cookie of a browser that is signed in: the second name where it comes by https. */
#define TL_ADMIN_COOKIE        "tellerline_admin"
#define TL_ADMIN_COOKIE_SECURE "__Host-tellerline_admin"
#define TL_ADMIN_CSRF_HEADER   "X-Tellerline-CSRF"
#define TL_ADMIN_CLIENT_MAX    64
/* Another host of the domain may have planted cookies of the same name: this many are tried. */
#define TL_ADMIN_COOKIES_MAX 16

struct tl_admin_head {
    const char *method;
    const char *target;        /* path and query as they were sent */
    const char *authorization; /* these are NULL when the request has no such header */
    const char *cookies[TL_ADMIN_COOKIES_MAX]; /* the values of those with our name */
    size_t n_cookies;
    const char *csrf;
    const char *host, *origin, *site; /* site: Sec-Fetch-Site */
    const char *content_type;
    const char *if_match, *idempotency_key;
    struct tl_address address;        /* of the client, behind trusted proxies */
    char client[TL_ADMIN_CLIENT_MAX]; /* the same as text */
};

/* secure: read the cookie of https. proxies: whose X-Forwarded-For is believed; NULL: nobody's. */
void tl_admin_head_read(struct tl_admin_head *head, struct MHD_Connection *connection,
                        const char *method, const char *target, bool secure,
                        const struct tl_networks *proxies);
/* The length of the target's path. */
size_t tl_admin_head_path(const struct tl_admin_head *head);

/*
 * Requests that other web sites make a browser send. A page of a foreign site cannot read our
 * answers, as nothing here allows it to; but it can send requests, with our cookie if the browser
 * takes it for the same site, and under a host name of its own that it lets point to us.
 */

/* Is the host of the request one under which browsers may come: an IP address, localhost, or that
 * of public_url ("": none)? Any other name may be one that a foreign site lets point to us. */
bool tl_admin_host_allowed(const struct tl_admin_head *head, const char *public_url);
/* Is it a loopback address, or localhost? */
bool tl_admin_host_loopback(const struct tl_admin_head *head);
/* Did Tellerline's own page send it, or no page at all, as far as the browser says? */
bool tl_admin_origin_own(const struct tl_admin_head *head, const char *public_url);

#endif
