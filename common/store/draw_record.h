/* SPDX-License-Identifier: Apache-2.0 */
/* What the state of a queue says of its draw (common/store/line/draw.lua). */
#ifndef TL_DRAW_RECORD_H
#define TL_DRAW_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "common/auth/draw.h"
#include "common/store/keys.h"
#include "common/store/redis.h"

#include "generated/protocol.h"

struct tl_draw_record {
    enum tl_draw_phase phase;
    int64_t opens_at_ms;  /* of the draw, once there is a phase */
    uint64_t cut;         /* seqs up to this one were given before the opening */
    uint64_t first, last; /* the drawn got theirs from `first` on; latecomers are after `last` */
    uint64_t drawn;       /* how many */
    uint64_t event;       /* DONE: a line of before this event is in the order of arrival */
    int64_t announced_for_ms; /* the opening that hash and salt are of; 0: none is announced */
    char hash[TL_DRAW_KEY_DIGITS + 1]; /* of the seed */
    char seed[TL_DRAW_KEY_DIGITS + 1]; /* "" until the draw is done */
    unsigned char salt[TL_DRAW_KEY_BYTES];
};

/* From the fields `draw`, `draw_hash` and `draw_seed` of the state, "" for one that is not there.
 * What cannot be read counts as not there. */
void tl_draw_record_parse(const char *draw, const char *hash, const char *seed,
                          struct tl_draw_record *record);
/* Reads them. A queue that does not exist has no draw. */
bool tl_draw_record_read(struct tl_redis *redis, const struct tl_keys *keys,
                         struct tl_draw_record *record, struct tl_error *err);

#endif
