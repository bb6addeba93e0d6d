/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers and times as the planner shows them to people. `size` is TL_WORDS_MAX. */
#ifndef TL_LAB_WORDS_H
#define TL_LAB_WORDS_H

#include <stddef.h>
#include <stdint.h>

enum { TL_WORDS_MAX = 48 }; /* bytes of any of them, with the terminating zero */

/* With separators of thousands and at most this many decimals, without zeros at the end:
 * "43,478.26", "6". */
void tl_words_number(double value, int decimals, char *text, size_t size);
/* In two units at most: "7.1 s", "6 min 15 s", "1 h 59 min", "3 d 4 h". */
void tl_words_time(int64_t ms, char *text, size_t size);
/* A share of 1 in percent: "12 %", "0.4 %". */
void tl_words_share(double share, char *text, size_t size);

#endif
