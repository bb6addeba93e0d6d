/* SPDX-License-Identifier: Apache-2.0 */
/* How answers look under /q/: the waiting page. */
#ifndef TL_PAGE_RENDERER_H
#define TL_PAGE_RENDERER_H

#include "worker/http/router.h"
#include "worker/page/page_address.h"
#include "worker/page/view.h"
#include "worker/visit/visit.h"

extern const struct tl_renderer tl_page_renderer;

/* `?return=`: where the waiting page sends its visitor. */
struct tl_return_to {
    char address[TL_ADDRESS_MAX]; /* percent-encoded; "": none */
    const char *refused;          /* why there is none, for the sender of the link; or NULL */
};

/* Reads the address. It counts if it leads to the site that the queue guards (target_url, may be
 * ""), or to one the operator named. A sender who did not encode it is understood where that is
 * possible: parameters after it that are not the page's own belong to its query. */
void tl_return_to_read(const struct tl_visit *visit, const char *target_url,
                       struct tl_return_to *result);

/* All of these answer the request and return true. */

/* A page of no place: OUTSIDE says how to join; MOVE asks whether the place of the request's code
 * is to come to this device, which has the number `device`; CODE shows a code, its address and the
 * image of that (`code_address`, `qr`). Nothing else of the view is read. */
bool tl_page_send(const struct tl_visit *visit, const struct tl_view *what);
/* A visitor who gets in without a place: on to `?return=` or the target_url (""), else a page that
 * says so. cookie: for Set-Cookie, or NULL. */
bool tl_page_send_through(const struct tl_visit *visit, const char *target_url, const char *cookie);

/* 303 to the page at another address. */
enum tl_page_redirection {
    TL_PAGE_BACK,    /* from a form to the page of the visitor's place */
    TL_PAGE_PRESENT, /* from a form on a page of another place, to that of the cookie's place */
    TL_PAGE_CLEAN,   /* without the ticket and the invite, which others could use */
    TL_PAGE_PROBE,   /* with a cookie that shows whether the browser keeps cookies */
};
bool tl_page_redirect(const struct tl_visit *visit, enum tl_page_redirection to);

#endif
