/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order of a draw in memory: visitors go in, in any order, and come out in that of their draw
 * keys. Each portion is sorted by itself, and the portions are merged on the way out, so no step
 * takes long however many there are. About 100 bytes a visitor.
 */
#ifndef TL_DRAW_ORDER_H
#define TL_DRAW_ORDER_H

#include <stdbool.h>
#include <stddef.h>

#include "common/auth/draw.h"

struct tl_draw_order;

/* The opening is copied. NULL when out of memory. */
struct tl_draw_order *tl_draw_order_new(const struct tl_draw_opening *opening);
void tl_draw_order_free(struct tl_draw_order **order);

/* Adds a visitor (1 to 64 bytes) to the open portion. False when out of memory. */
bool tl_draw_order_add(struct tl_draw_order *order, const char *visitor, size_t length);
/* Ends the portion. False when out of memory. */
bool tl_draw_order_cut(struct tl_draw_order *order);

struct tl_drawn {
    const char *visitor; /* not terminated; until the order is freed */
    size_t length;
    unsigned char id[TL_DRAW_ID_BYTES];
};

/* Takes the next visitor of all portions that were ended; after the first call none may be
 * added. False at the end. */
bool tl_draw_order_next(struct tl_draw_order *order, struct tl_drawn *drawn);

#endif
