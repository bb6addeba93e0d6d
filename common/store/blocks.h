/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocked prefixes of addresses: tl:blocks, one table for all queues (docs/contributors/
 * wire-format.md). The operator changes it with common/control/block.lua; workers follow it.
 */
#ifndef TL_BLOCKS_H
#define TL_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/base/net.h"
#include "common/store/redis.h"
#include "common/wire/names.h"

#include "generated/protocol.h"

/* Bytes of an entry's text: the prefix, a space and a queue. */
#define TL_BLOCK_TEXT_MAX (TL_PREFIX_TEXT_MAX + 1 + TL_QUEUE_NAME_MAX)

struct tl_block {
    struct tl_prefix prefix;
    char queue[TL_QUEUE_NAME_MAX + 1]; /* "": all queues */
    int64_t until_ms; /* Unix time by the store's clock; 0: until it is unblocked */
};

/* A table, longest prefixes first. One allocation, freed with free(). */
struct tl_blocks {
    size_t n;
    struct tl_block list[];
};

/* The version of the table, another one after each change; 0: there is none. */
bool tl_blocks_version(struct tl_redis *redis, const char *key_prefix, uint64_t *version,
                       struct tl_error *err);
/* Reads the table; entries that make no sense are left out. NULL on failure. */
struct tl_blocks *tl_blocks_read(struct tl_redis *redis, const char *key_prefix,
                                 struct tl_error *err);
/* The entry of the longest prefix that blocks this address from this queue now, or NULL. blocks
 * NULL: an empty table. */
const struct tl_block *tl_blocks_find(const struct tl_blocks *blocks,
                                      const struct tl_address *address, const char *queue,
                                      int64_t store_ms);
/* An entry without an end for this prefix (tl_prefix_parse) and queue ("": all). TL_ERR_INVALID. */
bool tl_block_parse(const char *prefix, const char *queue, struct tl_block *block,
                    struct tl_error *err);
/* As it stands in the store: the prefix, and for one queue a space and its name. */
void tl_block_format(const struct tl_block *block, char text[TL_BLOCK_TEXT_MAX]);

#endif
