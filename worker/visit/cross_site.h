/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What pages of other web sites make a visitor's browser send (CSRF, CORS).
 *
 * A POST changes something, so it must come from a page of this site, from one of
 * http.allowed_origins, or from a program, which names no origin. Pages of allowed origins may also
 * read the answers of the API.
 */
#ifndef TL_CROSS_SITE_H
#define TL_CROSS_SITE_H

#include <stdbool.h>

#include "worker/http/refusal.h"
#include "worker/http/request.h"
#include "worker/visit/context.h"

/* Do visitors come by https? So says http.public_url, or a trusted proxy of this request. */
bool tl_cross_site_https(const struct tl_worker *worker, const struct tl_request *request);
/* Prepares the answer for the page that asks. Call it before anything answers. */
void tl_cross_site_share(const struct tl_worker *worker, struct tl_request *request);
/* Answers a browser that asks whether a page of an allowed origin may send a request (preflight).
 * False: the request is something else. */
bool tl_cross_site_preflight(const struct tl_worker *worker, struct tl_request *request);
/* May the page that sent this request change something? */
bool tl_cross_site_allows(const struct tl_worker *worker, const struct tl_request *request,
                          struct tl_refusal *refusal);

#endif
