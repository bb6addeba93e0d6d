/* SPDX-License-Identifier: Apache-2.0 */
/* The page that proves a visitor's place (worker/web/proof.html): in Korean, else in English. */
#ifndef TL_PROOF_PAGE_H
#define TL_PROOF_PAGE_H

#include <stdint.h>

#include "worker/page/look.h"

/* Why there is no proof. */
enum tl_proof_missing {
    TL_PROOF_THERE,
    TL_PROOF_NOT_YET,   /* the trail does not have the place, or not yet */
    TL_PROOF_NO_TICKET, /* the browser does not have the place */
    TL_PROOF_NONE,      /* there is no archive here, or it cannot tell which leaf is whose */
    TL_PROOF_AWAY,      /* the archive cannot be asked now */
    TL_PROOF_REASONS
};

/* Strings are borrowed. Those of the proof are not read without one. */
struct tl_proof_page {
    enum tl_proof_missing missing;
    const char *queue, *ticket; /* ticket: for browsers without cookies; or NULL */
    const char *json, *leaf, *checkpoint;
    unsigned lane;
    uint64_t seq, index, size;
    int64_t ms; /* of the leaf, Unix time */
};

/* Renders the page, and its Content-Security-Policy. page->failed, policy->failed: no memory. */
void tl_proof_page_render(const struct tl_proof_page *what, const struct tl_brand *brand,
                          const struct tl_catalogue *language, struct tl_text *page,
                          struct tl_text *policy);

#endif
