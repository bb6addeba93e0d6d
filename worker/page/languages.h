/* SPDX-License-Identifier: Apache-2.0 */
/* The languages of the pages, and which of them a visitor gets. */
#ifndef TL_LANGUAGES_H
#define TL_LANGUAGES_H

#include <stddef.h>

#include "common/base/error.h"

#include "worker/page/catalogue.h"

struct tl_languages {
    struct tl_catalogue **all; /* English first, which is the source of all texts */
    size_t n;
};

/* The built-in languages, and on top of them the files (.yaml) of the operator's folder, in the
 * order of their names: each changes texts of a language, or adds one. NULL or "": no folder. NULL
 * on failure; freed with tl_languages_free. */
struct tl_languages *tl_languages_new(const char *folder, struct tl_error *err);
void tl_languages_free(struct tl_languages **languages);

/* The language with this code, or NULL. */
struct tl_catalogue *tl_languages_find(const struct tl_languages *languages, const char *code);

/* The language a visitor gets: `?lang=`, else the cookie, else the best of Accept-Language (RFC
 * 9110 section 12.5.4: ranges with weights; "ko-KR" counts as "ko"), else English. Each argument
 * may be NULL; what cannot be parsed is ignored. */
const struct tl_catalogue *tl_languages_choose(const struct tl_languages *languages,
                                               const char *query, const char *cookie,
                                               const char *accept);

#endif
