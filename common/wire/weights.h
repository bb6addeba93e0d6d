/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The weights of a queue's lanes: their text, "3,1", one whole number for each lane, separated by
 * commas; and the period in which all lanes have a whole number of turns (common/line/turns.h).
 */
#ifndef TL_WEIGHTS_H
#define TL_WEIGHTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/wire/place.h"

#define TL_WEIGHT_MAX 1000
/* Bytes of the text, with the terminating zero. */
#define TL_WEIGHTS_TEXT_MAX (TL_LANES_MAX * 5)

struct tl_weights {
    size_t n; /* 0: none; a lane is served while those before it are empty */
    uint32_t of[TL_LANES_MAX];
};

enum tl_weights_problem {
    TL_WEIGHTS_GOOD,
    TL_WEIGHTS_NUMBER, /* one is not a whole number from 1 to TL_WEIGHT_MAX */
    TL_WEIGHTS_MANY,   /* more than TL_LANES_MAX */
    TL_WEIGHTS_PERIOD, /* their least common multiple is above TL_PERIOD_MAX */
};

/* Reads a text of this length; an empty one is no weights. Leaves *weights unless it is good. */
enum tl_weights_problem tl_weights_parse(const char *text, size_t length,
                                         struct tl_weights *weights);
void tl_weights_format(const struct tl_weights *weights, char text[TL_WEIGHTS_TEXT_MAX]);
bool tl_weights_same(const struct tl_weights *a, const struct tl_weights *b);
/* The least common multiple of good weights; 1 without any. */
uint64_t tl_weights_period(const struct tl_weights *weights);

#endif
