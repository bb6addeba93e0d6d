/* SPDX-License-Identifier: Apache-2.0 */
/* Who asks for the waiting page: a person who opens it gets a place at once, others do not. */
#ifndef TL_NAVIGATION_H
#define TL_NAVIGATION_H

#include "worker/http/request.h"
#include "worker/page/languages.h"

enum tl_navigation {
    TL_NAVIGATION_PERSON,  /* opens the page in a tab */
    TL_NAVIGATION_AHEAD,   /* a browser fetches it in case it is opened, or only its headers are
                              wanted */
    TL_NAVIGATION_EMBEDDED /* a crawler, or another page that has it as image, frame or script */
};

/* By the headers that browsers send. An old browser, which sends none of them, counts as a person.
 */
enum tl_navigation tl_navigation_of(const struct tl_request *request);
/* The language of the answer. */
const struct tl_catalogue *tl_language_of(const struct tl_languages *languages,
                                          const struct tl_request *request);

#endif
