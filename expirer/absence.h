/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finding waiting visitors who went away: the places of the line that are in none of the presence
 * bitmaps of the last waiting_ttl. The function absent checks each of them again before it drops
 * it.
 */
#ifndef TL_ABSENCE_H
#define TL_ABSENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/line/line.h"
#include "common/role/roster.h"

struct tl_absence;

struct tl_absence *tl_absence_new(uint64_t events_length); /* NULL when out of memory */
void tl_absence_free(struct tl_absence **absence);

/* One pass over a queue's line: drops absent visitors. *dropped gets their number; *again_ms gets
 * the time until another pass can find more: the rest of the current bucket, in ms. */
bool tl_absence_pass(struct tl_absence *absence, const struct tl_held_queue *held,
                     const struct tl_line *line, uint64_t *dropped, int64_t *again_ms,
                     struct tl_error *err);

#endif
