/* SPDX-License-Identifier: Apache-2.0 */
/* How answers look under /q/: the waiting page. */
#ifndef TL_PAGE_RENDERER_H
#define TL_PAGE_RENDERER_H

#include "worker/http/router.h"
#include "worker/visit/context.h"

struct tl_qr;

extern const struct tl_renderer tl_page_renderer; /* context is the worker */

/* The page of a visitor without a place: it says how to join. */
void tl_page_send_outside(const struct tl_worker *worker, struct tl_request *request,
                          const char *queue);
/* A visitor who gets in without a place: on to `?return=` or the target_url (""), else a page that
 * says so. cookie: for Set-Cookie, or NULL. */
void tl_page_send_through(const struct tl_worker *worker, struct tl_request *request,
                          const char *queue, const char *target_url, const char *cookie);
/* Asks the browser for the same page again, with a cookie that shows whether it keeps cookies. */
void tl_page_send_probe(const struct tl_worker *worker, struct tl_request *request,
                        const char *queue);
/* Does the address have a ticket or an invite? */
bool tl_page_is_secret(const struct tl_request *request);
/* Sends the browser to the same page at an address without these. */
void tl_page_send_clean(const struct tl_worker *worker, struct tl_request *request,
                        const char *queue);

/* The page that asks whether the place of the request's code is to come to this device, which has
 * this number. */
void tl_page_send_move(const struct tl_worker *worker, struct tl_request *request,
                       const char *queue, const char *device);
/* The page that shows a code, its address and the image of that. */
void tl_page_send_code(const struct tl_worker *worker, struct tl_request *request,
                       const char *queue, const char *address, const struct tl_qr *qr);
/* 303 to the page of the visitor's place. */
void tl_page_send_back(const struct tl_worker *worker, struct tl_request *request,
                       const char *queue);
/* 303 to the page of the cookie's place, from a form on a page of another place. */
void tl_page_send_present(const struct tl_worker *worker, struct tl_request *request,
                          const char *queue);

#endif
