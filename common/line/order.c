/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "common/line/order.h"
#include "common/line/region.h"

#define COUNT_MAX (UINT64_C(1) << 32)
#define SEQ_END   (UINT64_C(1) << 63) /* seqs stay below it, so that no sum of them wraps */

/* ---- the regions ---- */

/* The index of the first region with this number or a larger one. */
static size_t find_region(const struct tl_order *order, uint64_t number)
{
    size_t i = order->n;
    while (i > 0 && tl_region_number(order->regions[i - 1]) >= number)
        i--;
    return i;
}

/* The region of this seq; NULL when nothing of it is held. */
static struct tl_region *region_of(const struct tl_order *order, uint64_t seq)
{
    uint64_t number = tl_region_number_of(seq);
    size_t i = find_region(order, number);
    bool found = i < order->n && tl_region_number(order->regions[i]) == number;
    return found ? order->regions[i] : NULL;
}

/* Drops the regions that hold nothing. */
static void drop_empty_regions(struct tl_order *order)
{
    size_t kept = 0;
    for (size_t i = 0; i < order->n; i++)
        if (tl_region_count(order->regions[i]) == 0)
            tl_region_free(&order->regions[i]);
        else
            order->regions[kept++] = order->regions[i];
    order->n = kept;
    if (kept > 0)
        return;
    free(order->regions);
    order->regions = NULL;
}

/* The region with this number, made if there is none. NULL when out of memory. */
static struct tl_region *make_region(struct tl_order *order, uint64_t number)
{
    size_t i = find_region(order, number);
    if (i < order->n && tl_region_number(order->regions[i]) == number)
        return order->regions[i];
    struct tl_region **regions =
        reallocarray(order->regions, order->n + 1, sizeof(struct tl_region *));
    if (regions == NULL)
        return NULL;
    order->regions = regions;
    struct tl_region *region = tl_region_new(number);
    if (region == NULL)
        return NULL;
    memmove(&regions[i + 1], &regions[i], (order->n - i) * sizeof(struct tl_region *));
    regions[i] = region;
    order->n++;
    return region;
}

/* ---- the interface ---- */

void tl_order_clear(struct tl_order *order)
{
    for (size_t i = 0; i < order->n; i++)
        tl_region_free(&order->regions[i]);
    free(order->regions);
    memset(order, 0, sizeof(*order));
}

/* The last seq up to `last` that is in the region of `first`. */
static uint64_t last_beside(uint64_t first, uint64_t last)
{
    uint64_t end = tl_region_last(tl_region_number_of(first));
    return end < last ? end : last;
}

/* Gets the memory for [first, last], or nothing at all. */
static bool reserve(struct tl_order *order, uint64_t first, uint64_t last)
{
    bool ok = true;
    for (uint64_t from = first; ok && from <= last; from = last_beside(from, last) + 1) {
        struct tl_region *region = make_region(order, tl_region_number_of(from));
        ok = region != NULL && tl_region_reserve(region, from, last_beside(from, last));
    }
    for (size_t i = 0; !ok && i < order->n; i++)
        tl_region_release(order->regions[i]);
    if (!ok)
        drop_empty_regions(order);
    return ok;
}

int64_t tl_order_insert(struct tl_order *order, uint64_t first, uint64_t count)
{
    if (count == 0)
        return 0;
    if (count > COUNT_MAX || first > SEQ_END - count)
        return -1;
    uint64_t last = first + count - 1;
    if (!reserve(order, first, last))
        return -1;
    uint64_t added = 0;
    for (uint64_t from = first; from <= last; from = last_beside(from, last) + 1)
        added += tl_region_insert(region_of(order, from), from, last_beside(from, last));
    order->count += added;
    return (int64_t)added;
}

uint64_t tl_order_remove(struct tl_order *order, uint64_t first, uint64_t count)
{
    if (count == 0 || order->count == 0)
        return 0;
    uint64_t last = count - 1 > UINT64_MAX - first ? UINT64_MAX : first + count - 1;
    uint64_t gone = 0;
    bool emptied = false;
    for (size_t i = find_region(order, tl_region_number_of(first));
         i < order->n && tl_region_number(order->regions[i]) <= tl_region_number_of(last); i++) {
        gone += tl_region_remove(order->regions[i], first, last);
        emptied = emptied || tl_region_count(order->regions[i]) == 0;
    }
    order->count -= gone;
    /* A short line comes and goes: its region stays, with the little memory that it then has. */
    if (emptied && (order->n > 1 || !tl_region_small(order->regions[0])))
        drop_empty_regions(order);
    return gone;
}

bool tl_order_contains(const struct tl_order *order, uint64_t seq)
{
    const struct tl_region *region = region_of(order, seq);
    return region != NULL && tl_region_contains(region, seq);
}

uint64_t tl_order_rank(const struct tl_order *order, uint64_t seq)
{
    /* Counted from the back: the place of most visitors is in the last region. */
    uint64_t number = tl_region_number_of(seq);
    uint64_t rank = order->count;
    for (size_t i = order->n; i > 0; i--) {
        const struct tl_region *region = order->regions[i - 1];
        if (tl_region_number(region) < number)
            break;
        rank -= tl_region_count(region);
        if (tl_region_number(region) == number)
            return rank + tl_region_rank(region, seq);
    }
    return rank;
}

bool tl_order_select(const struct tl_order *order, uint64_t rank, uint64_t *found)
{
    for (size_t i = 0; i < order->n; i++) {
        if (tl_region_select(order->regions[i], rank, found))
            return true;
        rank -= tl_region_count(order->regions[i]);
    }
    return false;
}

bool tl_order_next(const struct tl_order *order, uint64_t from, uint64_t *found)
{
    for (size_t i = find_region(order, tl_region_number_of(from)); i < order->n; i++)
        if (tl_region_next(order->regions[i], from, found))
            return true;
    return false;
}

size_t tl_order_bytes(const struct tl_order *order)
{
    size_t bytes = sizeof(*order) + order->n * sizeof(struct tl_region *);
    for (size_t i = 0; i < order->n; i++)
        bytes += tl_region_bytes(order->regions[i]);
    return bytes;
}
