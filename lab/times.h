/* SPDX-License-Identifier: Apache-2.0 */
/* Times of a crowd, in ms: what is due next, and what is usual. */
#ifndef TL_LAB_TIMES_H
#define TL_LAB_TIMES_H

#include <stddef.h>
#include <stdint.h>

/* When which visitor has something to do: a heap, the earliest on top. */
struct tl_due {
    int64_t at_ms;
    size_t visitor;
};

/* Zeroed at first; the list is freed with free(). */
struct tl_dues {
    struct tl_due *list; /* the first one is the earliest */
    size_t n, capacity;
};

void tl_dues_push(struct tl_dues *dues, struct tl_due due);
/* Takes the earliest one; there must be one. */
struct tl_due tl_dues_pop(struct tl_dues *dues);

void tl_times_sort(int64_t *times, size_t n);
/* Of sorted times the one that `part` in `of` do not exceed: 1 in 2 is the median. -1: there is
 * none. */
int64_t tl_times_quantile(const int64_t *sorted, size_t n, size_t part, size_t of);

#endif
