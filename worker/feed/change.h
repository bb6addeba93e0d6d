/* SPDX-License-Identifier: Apache-2.0 */
/* What the follower's thread posts to the loop: one change in the store. */
#ifndef TL_CHANGE_H
#define TL_CHANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/config/config.h"
#include "common/line/line.h"
#include "common/store/blocks.h"
#include "common/store/memory.h"
#include "worker/feed/mailbox.h"

enum tl_change_kind {
    TL_CHANGE_LINE,
    TL_CHANGE_ENTRY,
    TL_CHANGE_SETTINGS,
    TL_CHANGE_NOTICE,
    TL_CHANGE_RECOVERY,
    TL_CHANGE_TURNS,
    TL_CHANGE_GONE,
    TL_CHANGE_TROUBLE,
    TL_CHANGE_LISTED,
    TL_CHANGE_CLOCK,
    TL_CHANGE_STORE,
    TL_CHANGE_MEMORY,
    TL_CHANGE_BLOCKS,
};

struct tl_change {
    struct tl_message message;
    enum tl_change_kind kind;
    char queue[TL_QUEUE_NAME_MAX + 1];  /* "" for LISTED, CLOCK, STORE, MEMORY, BLOCKS */
    struct tl_queue_settings *settings; /* LINE, SETTINGS; freed with the change */
    struct tl_line *line;               /* LINE; freed with the change unless taken */
    int64_t number;                     /* CLOCK, STORE */
    struct tl_blocks *blocks;           /* BLOCKS; freed with the change unless taken */
    size_t length; /* ENTRY, NOTICE, TROUBLE, RECOVERY, TURNS, MEMORY: bytes that follow */
    unsigned char bytes[];
};

struct tl_memory_change {
    struct tl_store_memory memory;
    enum tl_memory_level level;
};

/* Frees the change with this message: for the mailbox. */
void tl_change_free(struct tl_message *message);

/* Each posts a change to the mailbox, and fails without memory. */
bool tl_change_post_line(struct tl_mailbox *changes, const char *queue,
                         const struct tl_queue_settings *settings, struct tl_line *line,
                         struct tl_error *err); /* takes the line in any case */
bool tl_change_post_settings(struct tl_mailbox *changes, const char *queue,
                             const struct tl_queue_settings *settings, struct tl_error *err);
/* ENTRY, NOTICE, TROUBLE, RECOVERY (a struct tl_recovery), TURNS (a struct tl_turns_state) or
 * MEMORY (a struct tl_memory_change). */
bool tl_change_post_bytes(struct tl_mailbox *changes, enum tl_change_kind kind, const char *queue,
                          const void *bytes, size_t length, struct tl_error *err);
bool tl_change_post_gone(struct tl_mailbox *changes, const char *queue, struct tl_error *err);
bool tl_change_post_blocks(struct tl_mailbox *changes, struct tl_blocks *blocks,
                           struct tl_error *err); /* takes the blocks in any case */
/* LISTED, CLOCK or STORE. */
bool tl_change_post_number(struct tl_mailbox *changes, enum tl_change_kind kind, int64_t number,
                           struct tl_error *err);

#endif
