/* SPDX-License-Identifier: Apache-2.0 */
/* The head of an admin request: what decides who may do what. All texts are borrowed from the
 * connection, and stay while the request is in work. */
#ifndef TL_ADMIN_HEAD_H
#define TL_ADMIN_HEAD_H

#include <microhttpd.h>

#include "common/base/net.h"

/* The cookie of a browser that is signed in: the second name where it comes by https. */
#define TL_ADMIN_COOKIE        "tellerline_admin"
#define TL_ADMIN_COOKIE_SECURE "__Host-tellerline_admin"
#define TL_ADMIN_CSRF_HEADER   "X-Tellerline-CSRF"
#define TL_ADMIN_CLIENT_MAX    64
/* Another host of the domain may have planted cookies of the same name: so many are tried. */
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

#endif
