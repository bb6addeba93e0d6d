/*
 * The waiting page as a pure function from a visitor's view to HTML: no HTTP, no clock, no store.
 *
 * The page works without its script: it is complete as rendered, and <meta http-equiv="refresh">
 * reloads it. The script (worker/web/page.js) updates the same page in place.
 */
#ifndef TL_PAGE_H
#define TL_PAGE_H

#include "common/base/text.h"

#include "worker/page/brand.h"
#include "worker/page/language.h"
#include "worker/page/page_view.h"

/* Headers that every page must be sent with, beside `Cache-Control: no-store` and
 * `X-Content-Type-Options: nosniff`. */
#define TL_PAGE_POLICY                                                                             \
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "                    \
    "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
#define TL_PAGE_POLICY_MAX 4096
/* The policy of this page: TL_PAGE_POLICY, opened for the script of a challenge service where the
 * page has one. */
void tl_page_policy(const struct tl_page_view *view, char policy[TL_PAGE_POLICY_MAX]);
/* Only the origin, never the address, which may have a ticket or an invite. ("no-referrer" would
 * make browsers send the forms with "Origin: null".) */
#define TL_PAGE_REFERRER_POLICY "strict-origin"

/* Appends the page. out->failed when memory ran out. */
void tl_page_render(const struct tl_page_view *view, const struct tl_brand *brand,
                    enum tl_language language, struct tl_text *out);

/* Appends the page's own address with the parameters that must survive a reload (return, ticket,
 * invite, from): "/q/concert?from=12". `action` is "", "/join" or "/leave"; language NULL: none.
 * After POST /q/{queue}/join and /leave the browser is redirected (303) to the address without an
 * action. */
void tl_page_address(const struct tl_page_view *view, const char *action, const char *language,
                     struct tl_text *out);

#endif
