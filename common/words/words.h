/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers, times and sentences as they are shown to people. */
#ifndef TL_WORDS_H
#define TL_WORDS_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/text.h"

enum { TL_WORDS_MAX = 48 }; /* bytes of any of them, with the terminating zero */

/* A text that lives as long as the expression it is used in, so that several fit into one call. */
struct tl_words {
    char text[TL_WORDS_MAX];
};

/* With separators of thousands and at most this many decimals, without zeros at the end:
 * "43,478.26", "6". */
struct tl_words tl_words_number(double value, int decimals);
struct tl_words tl_words_whole(uint64_t value);
/* So many per second, with decimals that show one below 1, too. */
struct tl_words tl_words_rate(double value);
/* In two units at most: "7.1 s", "6 min 15 s", "1 h 59 min", "3 d 4 h"; "-" for one that is not
 * known (less than 0). */
struct tl_words tl_words_time(int64_t ms);
/* A share of 1 in percent: "12 %", "0.4 %". */
struct tl_words tl_words_share(double share);

/* What a report has to say, whole sentences; no more than there is room for. */
struct tl_sentences {
    size_t n;
    char texts[16][320];
};
void tl_say(struct tl_sentences *sentences, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Appends the text as part of an HTML page or an SVG picture. What is not UTF-8, not shown or
 * obeyed becomes '?'. */
void tl_markup_append(struct tl_text *out, const char *text);

#endif
