/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When visitors joined: when their places got their numbers. Nothing keeps it for each place. The
 * history of the queue tells it, to 10 s for a day and to a minute for a week.
 */
#ifndef TL_CONTROL_JOINED_H
#define TL_CONTROL_JOINED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/store/keys.h"
#include "common/wire/place.h"

struct tl_control;

/* What tells it for some places. Begins zeroed. */
struct tl_joined {
    uint64_t first, last; /* the seqs it is to be read for; 0: none */
    int64_t now_ms;
    bool known; /* the history reaches back to the first */
    struct tl_joined_point {
        int64_t at_ms;
        uint64_t seq; /* the last one given then */
    } * points;
    size_t n;
};

/* Makes it be read for this place, too. */
void tl_joined_want(struct tl_joined *joined, tl_place place);
/* Reads it for the places that are wanted. At most as much as the history has points: 20 bytes for
 * each, 17000 of them. */
bool tl_joined_read(struct tl_joined *joined, struct tl_control *control,
                    const struct tl_keys *keys, struct tl_error *err);
/* When the visitor of the place joined, Unix ms; 0: not known, because the history begins later.
 * Places of a draw: when it numbered them. */
int64_t tl_joined_at(const struct tl_joined *joined, tl_place place);
/* Empties it. */
void tl_joined_clear(struct tl_joined *joined);

#endif
