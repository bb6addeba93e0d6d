/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The operator's notice as the store keeps it and events carry it: one text for everyone, or one
 * for each language.
 *
 * Texts of several languages stand behind each other, each after the byte 0x1E (record separator)
 * and its language in brackets: "\x1e[en] We are open.\x1e[ko] ...". Anything that does not begin
 * with 0x1E is one text for everyone. So a program that knows no languages shows all of them in a
 * row, and a notice that it wrote is read by all.
 */
#ifndef TL_NOTICE_TEXT_H
#define TL_NOTICE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/error.h"
#include "common/base/text.h"

#define TL_NOTICE_TEXT_MAX     500 /* bytes in one language */
#define TL_NOTICE_LANGUAGE_MAX 15  /* characters of a language's code */
#define TL_NOTICE_LANGUAGES    24  /* languages of a notice */
/* Bytes of a whole notice. */
#define TL_NOTICE_MAX (TL_NOTICE_LANGUAGES * (TL_NOTICE_TEXT_MAX + TL_NOTICE_LANGUAGE_MAX + 4))

struct tl_notice_text {
    char language[TL_NOTICE_LANGUAGE_MAX + 1]; /* "en", "zh-Hant"; "": everyone */
    const char *text;                          /* borrowed; not NUL-terminated */
    size_t length;                             /* 1 or more, except of an empty notice */
};

/* Is it one of several languages? */
bool tl_notice_is_several(const char *notice);
/* Takes a notice apart; returns how many texts there are, at least one. What is too long, or too
 * much, is cut off; a text without a language is for everyone. */
size_t tl_notice_split(const char *notice, size_t length,
                       struct tl_notice_text texts[TL_NOTICE_LANGUAGES]);
/* Appends the notice that these make: one without a language, or several with one each. Sets
 * TL_ERR_INVALID, and appends nothing, for what is no notice. */
bool tl_notice_join(const struct tl_notice_text *texts, size_t n, struct tl_text *notice,
                    struct tl_error *err);
/* Is this a whole notice, as join makes them? */
bool tl_notice_check(const char *notice, size_t length, struct tl_error *err);

/* Which of the languages a visitor of this language reads: that one; or the same without a script
 * or region ("pt" for "pt-BR"); or English; or the first. NULL: of no language. */
size_t tl_notice_pick(const struct tl_notice_text *texts, size_t n, const char *language);

/* "en", "pt-BR", "zh-Hant": two or three small letters, and subtags. */
bool tl_notice_language_valid(const char *code, size_t length);

#endif
