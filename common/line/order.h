/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order index: the position of each waiting visitor of one lane, without asking Redis.
 *
 * Seqs jump by billions when the store was restarted (docs/contributors/wire-format.md), so they
 * are cut into regions, and a region of which nothing is held has no memory. There is hardly ever
 * more than one or two. Not thread-safe.
 */
#ifndef TL_ORDER_H
#define TL_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zeroed: an empty index. */
struct tl_order {
    struct tl_region **regions; /* ascending; few, so that they are looked through from the end */
    size_t n;
    uint64_t count; /* places held */
};

/* Forgets all places, and frees its memory. */
void tl_order_clear(struct tl_order *order);

/* Adds seqs [first, first + count). Those present already stay. Returns how many were new, or -1
 * when out of memory, when count is more than 2^32, or when a seq is 2^63 or more (then nothing was
 * added). */
int64_t tl_order_insert(struct tl_order *order, uint64_t first, uint64_t count);
/* Removes seqs [first, first + count), present or not. Returns how many were present. */
uint64_t tl_order_remove(struct tl_order *order, uint64_t first, uint64_t count);

bool tl_order_contains(const struct tl_order *order, uint64_t seq);
/* How many seqs held are smaller than seq (whether or not seq itself is held). */
uint64_t tl_order_rank(const struct tl_order *order, uint64_t seq);

/* The smallest seq held that is >= from. False if there is none. Iterate with from = *found + 1. */
bool tl_order_next(const struct tl_order *order, uint64_t from, uint64_t *found);

/* The seq held at 0-based rank. False if rank >= count. */
bool tl_order_select(const struct tl_order *order, uint64_t rank, uint64_t *found);

/* Heap bytes held, for metrics. */
size_t tl_order_bytes(const struct tl_order *order);

#endif
