/* How answers look under /q/: the waiting page. */
#ifndef TL_PAGE_RENDERER_H
#define TL_PAGE_RENDERER_H

#include "worker/api/context.h"
#include "worker/http/renderer.h"

extern const struct tl_renderer tl_page_renderer; /* context is the api */

/* The page of a visitor without a place: it says how to join. */
void tl_page_send_outside(const struct tl_api *api, struct tl_request *request, const char *queue);
/* A visitor who gets in without a place: on to `?return=` or the target_url (""), else a page that
 * says so. cookie: for Set-Cookie, or NULL. */
void tl_page_send_through(const struct tl_api *api, struct tl_request *request, const char *queue,
                          const char *target_url, const char *cookie);
/* Does the address have a ticket or an invite? */
bool tl_page_is_secret(const struct tl_request *request);
/* Sends the browser to the same page at an address without these. */
void tl_page_send_clean(const struct tl_api *api, struct tl_request *request, const char *queue);

#endif
