/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The waiting page as a pure function from a visitor's view to HTML: no HTTP, no clock, no store.
 *
 * The page works without its script: it is complete as rendered, and <meta http-equiv="refresh">
 * reloads it. The script (worker/web/page.js) updates the same page in place. Scripts and style
 * sheets stand in the page, so that one request shows it, and no other can fail.
 */
#ifndef TL_PAGE_H
#define TL_PAGE_H

#include "common/base/text.h"

#include "worker/page/catalogue.h"
#include "worker/page/look.h"
#include "worker/page/page_address.h"
#include "worker/page/view.h"

/* Appends the Content-Security-Policy of this page: its own scripts and style sheets by their
 * hashes, and where the page has a challenge service, what that needs. Send it with the page,
 * beside `Cache-Control: no-store` and `X-Content-Type-Options: nosniff`. out->failed when memory
 * ran out. */
void tl_page_policy(const struct tl_view *view, const struct tl_brand *brand, struct tl_text *out);
/* Only the origin, never the address, which may have a ticket or an invite. ("no-referrer" would
 * make browsers send the forms with "Origin: null".) */
#define TL_PAGE_REFERRER_POLICY "strict-origin"

/* Appends the page. out->failed when memory ran out. */
void tl_page_render(const struct tl_view *view, const struct tl_brand *brand,
                    const struct tl_catalogue *language, struct tl_text *out);

#endif
