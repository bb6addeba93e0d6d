/* SPDX-License-Identifier: Apache-2.0 */
/* The addresses of the waiting page, those that a visitor may be sent to after it, and QR codes
 * (ISO/IEC 18004) of addresses, as the path of an SVG image. */
#ifndef TL_PAGE_ADDRESS_H
#define TL_PAGE_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/origin.h"
#include "common/base/text.h"
#include "worker/page/view.h"

/* The address, if it is an absolute http or https one, in printable ASCII without characters that
 * RFC 3986 forbids; it may be NULL. Only such an address is put into a link. */
const char *tl_address_or_null(const char *address);

/* May the page send a visitor to `address`, which came with the request? Only to the origin
 * (scheme, host, port) of target_url, which may be NULL or "", or of one of the `allowed`
 * addresses, separated by spaces. Without this check `?return=` would be an open redirect
 * (CWE-601). Addresses that tl_origin_parse refuses are refused. */
bool tl_return_address_allowed(const char *address, const char *target_url, const char *allowed);

/* Appends text to an address as browsers would: spaces, quotes, letters beyond ASCII and the like
 * are percent-encoded. part: it is a name or a value of a query, in which "&", "=" and so on are
 * encoded, too. False: the address is too long, or the text has a control character or a backslash,
 * which programs take for different things. */
bool tl_address_append(char address[TL_ADDRESS_MAX], const char *text, bool part);

/* Appends the page's own address with the parameters that must survive a reload (return, ticket,
 * invite, from): "/q/concert?from=12". `action` is "", or of a form, whose address names the
 * page's place, too: "/join", "/leave", "/transfer" or "/move". language NULL: none. solution: the
 * signed wait of a visitor who has waited, which serves as one; or NULL. After POST /q/{queue}/join
 * and /leave the browser is redirected (303) to the address without an action. */
void tl_page_address(const struct tl_view *view, const char *action, const char *language,
                     const char *solution, struct tl_text *out);

#define TL_QR_TEXT_MAX 600 /* bytes of the text: a code of more is hard to scan from a screen */
#define TL_QR_QUIET    4   /* modules that stay light around the code; part of the size */

struct tl_qr {
    struct tl_text path; /* the dark modules, as strokes one unit wide */
    unsigned size;       /* of the image, in modules */
};

/* Makes the code of this text; path.failed when it is too long or memory ran out. tl_qr_free
 * frees it in any case. */
void tl_qr_make(const char *text, struct tl_qr *qr);
void tl_qr_free(struct tl_qr *qr);

/* Appends the whole image: dark on light, whatever surrounds it. */
void tl_qr_svg(const struct tl_qr *qr, struct tl_text *out);

#endif
