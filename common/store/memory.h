/* SPDX-License-Identifier: Apache-2.0 */
/* How much memory the store uses, and what it does when there is no more. */
#ifndef TL_STORE_MEMORY_H
#define TL_STORE_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#include "common/store/redis.h"

struct tl_store_memory {
    uint64_t used, limit; /* bytes; limit 0: none is set */
    char policy[32];      /* maxmemory-policy; anything but noeviction deletes keys of queues */
    bool appends;         /* `appendonly yes` */
    bool not_written; /* its last write of the append-only file, its rewrite, or a dump failed */
};

/* Reads it from INFO, and whether the store writes to its disk. */
bool tl_store_memory_read(struct tl_redis *redis, struct tl_store_memory *memory,
                          struct tl_error *err);
/* Reads the text of INFO memory persistence. A field that is missing stays 0 or empty. */
void tl_store_memory_parse(const char *info, struct tl_store_memory *memory);

enum tl_memory_level {
    TL_MEMORY_ROOM,
    TL_MEMORY_SCARCE, /* from 80 % of the limit on; below 75 % there is room again */
    TL_MEMORY_FULL,   /* from 95 % on no visitor is accepted; below 90 % it is scarce again */
};
/* was: the last answer, so that it does not flap. */
enum tl_memory_level tl_store_memory_level(const struct tl_store_memory *memory,
                                           enum tl_memory_level was);
/* In percent of the limit; 0 without one. */
unsigned tl_store_memory_percent(const struct tl_store_memory *memory);
/* May the store delete keys to make room? */
bool tl_store_memory_evicts(const struct tl_store_memory *memory);

#endif
