/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hash map from a place (never 0) to one 64-bit value: active places to deadlines, ended places
 * to their end. Open addressing with linear probing and backward-shift deletion; at most 3/4 full;
 * shrinks when nearly empty. Not thread-safe.
 */
#ifndef TL_PLACEMAP_H
#define TL_PLACEMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/wire/place.h"

/* Zeroed: an empty map. */
struct tl_placemap {
    struct tl_placemap_entry {
        tl_place place; /* 0: free */
        uint64_t value;
    } * entries;     /* NULL until first use */
    size_t capacity; /* a power of two, or 0 */
    unsigned shift;  /* 64 - log2(capacity) */
    size_t count;    /* places held */
};

void tl_placemap_clear(struct tl_placemap *map); /* frees its memory */
/* Inserts or overwrites. False when out of memory (map unchanged). */
bool tl_placemap_put(struct tl_placemap *map, tl_place place, uint64_t value);
bool tl_placemap_get(const struct tl_placemap *map, tl_place place, uint64_t *value);
/* True if it was present; its value goes to *value when value is not NULL. */
bool tl_placemap_remove(struct tl_placemap *map, tl_place place, uint64_t *value);
/* Removes every place for which keep returns false. */
void tl_placemap_keep(struct tl_placemap *map, bool (*keep)(void *context, tl_place place),
                      void *context);
/* The next entry from *at on, which moves behind it; NULL: there is none. Begin at 0; the map must
 * not change meanwhile. */
const struct tl_placemap_entry *tl_placemap_next(const struct tl_placemap *map, size_t *at);
size_t tl_placemap_bytes(const struct tl_placemap *map);

#endif
