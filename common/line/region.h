/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One region of an order index: 2^26 seqs.
 *
 * A bitmap over sequence numbers, cut into blocks of 4,096 bits; a Fenwick tree (P. Fenwick, "A new
 * data structure for cumulative frequency tables", 1994) over the blocks' counts gives the rank of
 * any seq in O(log blocks) plus at most 8 population counts. Empty blocks cost a pointer; the
 * window slides forward as the front of the line empties, and grows (both ways) by doubling. Ten
 * million waiting visitors take about 1.4 MB. Not thread-safe.
 */
#ifndef TL_REGION_H
#define TL_REGION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tl_region;

/* The number of the region with this seq, and the last seq of a region. */
uint64_t tl_region_number_of(uint64_t seq);
uint64_t tl_region_last(uint64_t number);

/* A new empty region with this number, or NULL when out of memory. */
struct tl_region *tl_region_new(uint64_t number);
/* Frees *region (NULL allowed) and clears the caller's pointer. */
void tl_region_free(struct tl_region **region);
uint64_t tl_region_number(const struct tl_region *region);

/* Gets the memory for seqs [first, last], which are of this region. False when out of memory. */
bool tl_region_reserve(struct tl_region *region, uint64_t first, uint64_t last);
/* Gives back memory that was reserved and not used. */
void tl_region_release(struct tl_region *region);
/* Adds seqs [first, last], which were reserved. Those present already stay. Returns how many were
 * new. */
uint64_t tl_region_insert(struct tl_region *region, uint64_t first, uint64_t last);
/* Removes seqs [first, last], of this region or not, present or not. Returns how many were present.
 */
uint64_t tl_region_remove(struct tl_region *region, uint64_t first, uint64_t last);

bool tl_region_contains(const struct tl_region *region, uint64_t seq);
/* How many seqs held are smaller than seq (whether or not seq itself is held). */
uint64_t tl_region_rank(const struct tl_region *region, uint64_t seq);
uint64_t tl_region_count(const struct tl_region *region);

/* The smallest seq held that is >= from. False if there is none. */
bool tl_region_next(const struct tl_region *region, uint64_t from, uint64_t *found);

/* The seq held at 0-based rank. False if rank >= count. */
bool tl_region_select(const struct tl_region *region, uint64_t rank, uint64_t *found);

/* Is it so small that it need not be freed when it is empty? */
bool tl_region_small(const struct tl_region *region);
/* Heap bytes held, for metrics. */
size_t tl_region_bytes(const struct tl_region *region);

#endif
