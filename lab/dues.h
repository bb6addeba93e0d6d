/* SPDX-License-Identifier: Apache-2.0 */
/* When which visitor has something to do: a heap, the earliest on top. */
#ifndef TL_LAB_DUES_H
#define TL_LAB_DUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tl_due {
    int64_t at_ms;
    size_t visitor;
};

/* Zeroed at first; freed with tl_dues_free. */
struct tl_dues {
    struct tl_due *list; /* the first one is the earliest */
    size_t n, capacity;
};

/* False when out of memory. */
bool tl_dues_push(struct tl_dues *dues, struct tl_due due);
/* Takes the earliest one; there must be one. */
struct tl_due tl_dues_pop(struct tl_dues *dues);
void tl_dues_free(struct tl_dues *dues);

#endif
