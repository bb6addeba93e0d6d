/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A text in several languages, as a setting holds it: the code of a language and the text in it, in
 * turn, each ended by a zero, and another zero at the end. The code "*" is of a text for everyone.
 */
#ifndef TL_CONFIG_TEXTS_H
#define TL_CONFIG_TEXTS_H

#include <stdbool.h>
#include <stddef.h>

enum { TL_TEXTS_LANGUAGES = 24 };
#define TL_TEXTS_EVERYONE "*"

/* The first text of `texts`, or the one after `text`, and the code of its language. NULL: no more.
 */
const char *tl_texts_next(const char *texts, const char *text, const char **language);
/* The text that a visitor of this language reads: in it; or in the same without a script or region
 * ("pt" for "pt-BR"); or for everyone; or in English; or the first; "" when there is none. *found,
 * which may be NULL, gets the code of the language, or NULL where the text is for everyone. */
const char *tl_texts_pick(const char *texts, const char *language, const char **found);

/* Is it the code of a language, such as en or zh-Hant, or "*"? */
bool tl_texts_language_valid(const char *language);
/* Sets the text in a language; one of length 0 removes it. False: it is one language too many, or
 * does not fit into the size bytes of texts, which are unchanged. */
bool tl_texts_put(char *texts, size_t size, const char *language, const char *text, size_t length);

/* As the store keeps them: each text after the byte 0x1E and its language in brackets,
 * "\x1e[en] Closed.\x1e[ko] ...", as in a notice (common/wire/notice_text.h); one for everyone as
 * it is. Cut to size bytes. */
void tl_texts_write(const char *texts, char *value, size_t size);
/* The other way. False: it is no such value, or does not fit. */
bool tl_texts_read(const char *value, char *texts, size_t size);

#endif
