/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "common/line/placemap.h"

enum { ENTRIES_MIN = 16 };

/* Where a place belongs: multiplicative hashing (Knuth, The Art of Computer Programming, vol.
 * 3, 6.4), which spreads consecutive places evenly. */
static size_t home_of(const struct tl_placemap *map, tl_place place)
{
    return (size_t)((place * UINT64_C(0x9E3779B97F4A7C15)) >> map->shift);
}

/* The index that holds place, or the free one where it would go. Some entry is always free. */
static size_t find(const struct tl_placemap *map, tl_place place)
{
    size_t i = home_of(map, place);
    while (map->entries[i].place != 0 && map->entries[i].place != place)
        i = (i + 1) & (map->capacity - 1);
    return i;
}

static bool resize(struct tl_placemap *map, size_t capacity)
{
    struct tl_placemap bigger = {.capacity = capacity, .count = map->count};
    bigger.shift = 64 - (unsigned)__builtin_ctzll(capacity);
    bigger.entries = calloc(capacity, sizeof(*bigger.entries));
    if (bigger.entries == NULL)
        return false;
    for (size_t i = 0; i < map->capacity; i++) {
        if (map->entries[i].place != 0)
            bigger.entries[find(&bigger, map->entries[i].place)] = map->entries[i];
    }
    free(map->entries);
    *map = bigger;
    return true;
}

/* Frees entry i and moves back the entries after it that may be nearer to their home. */
static void erase(struct tl_placemap *map, size_t i)
{
    size_t mask = map->capacity - 1;
    for (size_t next = (i + 1) & mask; map->entries[next].place != 0; next = (next + 1) & mask) {
        size_t distance = (next - home_of(map, map->entries[next].place)) & mask;
        if (distance < ((next - i) & mask))
            continue; /* the gap is before its home */
        map->entries[i] = map->entries[next];
        i = next;
    }
    map->entries[i] = (struct tl_placemap_entry){0};
    map->count--;
}

void tl_placemap_clear(struct tl_placemap *map)
{
    free(map->entries);
    memset(map, 0, sizeof(*map));
}

bool tl_placemap_put(struct tl_placemap *map, tl_place place, uint64_t value)
{
    if (place == 0)
        return false;
    size_t i = 0;
    if (map->capacity > 0) {
        i = find(map, place);
        if (map->entries[i].place == place) {
            map->entries[i].value = value;
            return true;
        }
    }
    if (map->count + 1 > map->capacity / 4 * 3) {
        if (!resize(map, map->capacity == 0 ? ENTRIES_MIN : map->capacity * 2))
            return false;
        i = find(map, place);
    }
    map->entries[i] = (struct tl_placemap_entry){.place = place, .value = value};
    map->count++;
    return true;
}

bool tl_placemap_get(const struct tl_placemap *map, tl_place place, uint64_t *value)
{
    if (map->capacity == 0 || place == 0)
        return false;
    size_t i = find(map, place);
    if (map->entries[i].place == 0)
        return false;
    *value = map->entries[i].value;
    return true;
}

void tl_placemap_keep(struct tl_placemap *map, bool (*keep)(void *context, tl_place place),
                      void *context)
{
    for (size_t i = 0; i < map->capacity; i++) {
        /* Erasing moves entries towards i, never to one of those checked before. */
        while (map->entries[i].place != 0 && !keep(context, map->entries[i].place))
            erase(map, i);
    }
}

const struct tl_placemap_entry *tl_placemap_next(const struct tl_placemap *map, size_t *at)
{
    while (*at < map->capacity) {
        const struct tl_placemap_entry *entry = &map->entries[(*at)++];
        if (entry->place != 0)
            return entry;
    }
    return NULL;
}

bool tl_placemap_remove(struct tl_placemap *map, tl_place place, uint64_t *value)
{
    if (map->capacity == 0 || place == 0)
        return false;
    size_t i = find(map, place);
    if (map->entries[i].place == 0)
        return false;
    if (value != NULL)
        *value = map->entries[i].value;
    erase(map, i);
    if (map->capacity > ENTRIES_MIN && map->count < map->capacity / 8) {
        /* Without memory for a smaller table, the larger one serves as well. */
        (void)resize(map, map->capacity / 2);
    }
    return true;
}

size_t tl_placemap_bytes(const struct tl_placemap *map)
{
    return sizeof(*map) + map->capacity * sizeof(*map->entries);
}
