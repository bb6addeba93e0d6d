/* SPDX-License-Identifier: Apache-2.0 */
/* QR codes (ISO/IEC 18004) of addresses, as the path of an SVG image. */
#ifndef TL_QR_H
#define TL_QR_H

#include "common/base/text.h"

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
