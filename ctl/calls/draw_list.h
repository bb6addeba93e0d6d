/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The published list of a draw, as text: lines `name value`, then an empty line, then the draw ids
 * of those who were drawn, in their order, one a line (docs/operators/openings.md).
 *
 *   tellerline-draw 1
 *   queue concert-2026
 *   opens_at 2026-12-01T11:00:00.000Z
 *   seed_hash <64 hex digits>
 *   seed <64 hex digits>
 *   drawn 1000000
 */
#ifndef TL_CTL_CALLS_DRAW_LIST_H
#define TL_CTL_CALLS_DRAW_LIST_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "common/auth/draw.h"
#include "common/base/error.h"
#include "common/wire/names.h"

struct tl_draw_head {
    char queue[TL_QUEUE_NAME_MAX + 1];
    int64_t opens_at_ms;
    unsigned char seed[TL_DRAW_KEY_BYTES];
    unsigned char hash[TL_DRAW_KEY_BYTES];
    uint64_t drawn;
};

/* Writes the head. The ids follow, each by tl_draw_list_write_id. */
void tl_draw_list_write_head(FILE *out, const struct tl_draw_head *head);
void tl_draw_list_write_id(FILE *out, const unsigned char id[TL_DRAW_ID_BYTES]);

struct tl_draw_check {
    const unsigned char *hash; /* published before the draw; NULL: the one in the list */
    const unsigned char *id;   /* a draw id to look for, or NULL */
    struct tl_draw_head head;  /* out */
    uint64_t rank;             /* out: of that id, from 1; 0: it is not in the list */
};

/* Recomputes the order: the seed has the hash, the list is complete, and the draw keys of its ids
 * ascend. False, with err naming the first line that is wrong. */
bool tl_draw_list_verify(FILE *in, struct tl_draw_check *check, struct tl_error *err);

#endif
