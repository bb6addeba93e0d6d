/* SPDX-License-Identifier: Apache-2.0 */
/* One change in the store, which the follower's thread tells the loop. */
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
#include "common/store/state.h"
#include "worker/feed/mailbox.h"

enum tl_change_kind {
    TL_CHANGE_LINE,     /* a new queue, or a new line of a known one */
    TL_CHANGE_ENTRY,    /* of its events */
    TL_CHANGE_SETTINGS, /* they have changed */
    TL_CHANGE_NOTICE,   /* length 0: there is none */
    TL_CHANGE_RECOVERY, /* before the first line, with each new line, and whenever it changes */
    TL_CHANGE_TURNS,    /* of the lanes, after the settings may have changed */
    TL_CHANGE_GONE,     /* the queue was deleted */
    TL_CHANGE_TROUBLE,  /* it cannot be followed */
    TL_CHANGE_SOUND,    /* it is followed again */
    TL_CHANGE_LISTED,   /* every queue has been posted */
    TL_CHANGE_CLOCK,
    TL_CHANGE_STORE,
    TL_CHANGE_MEMORY, /* how full the store's memory is; about once a second */
    TL_CHANGE_BLOCKS, /* the blocked prefixes have changed */
};

struct tl_change {
    struct tl_message message;
    enum tl_change_kind kind;
    char queue[TL_QUEUE_NAME_MAX + 1];        /* "" from LISTED on: it is not of a queue */
    struct tl_line *line;                     /* LINE; NULL when it was taken over */
    struct tl_blocks *blocks;                 /* BLOCKS; likewise */
    const struct tl_queue_settings *settings; /* LINE, SETTINGS */
    const void *bytes;                        /* ENTRY, NOTICE */
    size_t length;                            /* of the bytes */
    union {
        struct tl_recovery recovery; /* RECOVERY */
        struct tl_turns_state turns; /* TURNS */
        int64_t offset_ms;           /* CLOCK: the store's Unix ms minus tl_clock_ms */
        bool up;                     /* STORE */
        bool away;                   /* TROUBLE: the node of a cluster that has it is */
        struct {                     /* MEMORY */
            struct tl_store_memory memory;
            enum tl_memory_level level;
        };
    };
};

/* Posts a copy of the change, with copies of its settings and bytes: of this queue, or "". Takes
 * its line and blocks in any case. False when out of memory. */
bool tl_change_post(struct tl_mailbox *changes, const char *queue, const struct tl_change *change,
                    struct tl_error *err);
/* Reads the recovery (kind TL_CHANGE_RECOVERY) or, after a change of the settings, the turns of the
 * lanes (TL_CHANGE_TURNS; the steps that the loop has counted may have had other weights), and
 * posts what it read. */
bool tl_change_read_state(struct tl_mailbox *changes, struct tl_redis *redis,
                          const struct tl_keys *keys, enum tl_change_kind kind,
                          struct tl_error *err);
/* The same for the notice of the queue. */
bool tl_change_read_notice(struct tl_mailbox *changes, struct tl_redis *redis,
                           const struct tl_keys *keys, struct tl_error *err);
void tl_change_free(struct tl_change *change);

#endif
