/* The languages of the pages, and which of them a visitor gets. */
#ifndef TL_LANGUAGE_H
#define TL_LANGUAGE_H

enum tl_language { TL_LANGUAGE_EN, TL_LANGUAGE_KO, TL_LANGUAGES };

/* "en", "ko": the BCP 47 code, as in the lang attribute, `?lang=` and the cookie. */
const char *tl_language_code(enum tl_language language);

/* The language a visitor gets: `?lang=`, else the cookie, else the best of Accept-Language (RFC
 * 9110 section 12.5.4: ranges with weights; "ko-KR" counts as "ko"), else English. Each argument
 * may be NULL; what cannot be parsed is ignored. */
enum tl_language tl_language_choose(const char *query, const char *cookie, const char *accept);

#endif
