/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a hook is told of a queue in one request: the next entries of the journal that it asked for,
 * as JSON (docs/integrators/webhooks.md).
 */
#ifndef TL_NOTIFIER_BATCH_H
#define TL_NOTIFIER_BATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/config/config.h"
#include "common/store/keys.h"
#include "common/store/redis.h"
#include "notifier/hook.h"

enum { TL_CURSOR_ID_MAX = 48 };

/* How far a hook was told: up to this entry, and how many were written by then. */
struct tl_cursor {
    char id[TL_CURSOR_ID_MAX];
    uint64_t n;
};

/* "ID N". False for what is no such text. */
bool tl_cursor_parse(const char *text, struct tl_cursor *cursor);

struct tl_batch_wish {
    const struct tl_hook_config *hook;
    const struct tl_keys *keys;
    uint64_t generation;
    struct tl_cursor from;
    int64_t oldest_ms; /* what happened before is no longer told */
};

struct tl_hook_batch {
    char *body; /* NULL: the hook asked for none of it */
    size_t length;
    char id[TL_DELIVERY_ID_MAX];
    struct tl_cursor until; /* as `from`, when there was nothing */
    uint64_t events;        /* in it */
    uint64_t lost;          /* entries trimmed, or too old */
    bool more;              /* there may be more */
};

/* Reads entries and writes the body. What is read is bounded. The caller frees body with free(). */
bool tl_hook_batch_read(struct tl_redis *redis, const struct tl_batch_wish *wish,
                        struct tl_hook_batch *batch, struct tl_error *err);

#endif
