/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one webhook is told of one queue: one request after the other, in the order of the journal,
 * each with the next entries that it asked for, as JSON (docs/integrators/webhooks.md). A request
 * that fails is sent again, after a back-off, until the webhook takes it or it is too old. The
 * cursor is in the store, so another process goes on where this one ends: every event is told at
 * least once.
 */
#ifndef TL_FEED_H
#define TL_FEED_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/clock.h"
#include "common/store/library.h"
#include "notifier/webhook.h"

enum { TL_CURSOR_ID_MAX = 48 };

/* How far a webhook was told: up to this entry, and how many were written by then. */
struct tl_cursor {
    char id[TL_CURSOR_ID_MAX];
    uint64_t n;
};

struct tl_feed {
    struct tl_webhook *webhook; /* borrowed */
    struct tl_cursor cursor;
    bool placed;                 /* the cursor is known */
    struct tl_fetch *post;       /* the request under way, or NULL */
    struct tl_cursor sent_until; /* of the request under way */
    uint64_t sent_events, sent_lost;
    bool sent_all; /* there was no more in the journal */
    struct tl_backoff backoff;
    int64_t due_ms;           /* local monotonic: no request before */
    int64_t failing_since_ms; /* local monotonic; 0: it does not fail */
};

/* What it takes to serve the feeds of a queue. */
struct tl_feed_world {
    struct tl_redis *redis;
    const struct tl_keys *keys;
    struct tl_args *args;
    uint64_t generation, journaled; /* as of the last look */
    int64_t store_ms;               /* the store's clock */
    int64_t kept_ms;                /* how long a webhook is tried again */
};

void tl_feed_init(struct tl_feed *feed, struct tl_webhook *webhook);
void tl_feed_deinit(struct tl_feed *feed);

/* The cursor as the store has it, "ID N", unless a request is under way. What is no such text is
 * left out. */
void tl_feed_place(struct tl_feed *feed, const char *cursor);
/* Notes how a request ended, and begins the next one when there is something to tell. Lowers
 * *due_ms to the time at which to come again, local monotonic. */
bool tl_feed_serve(struct tl_feed *feed, const struct tl_feed_world *world, int64_t now_ms,
                   int64_t *due_ms, struct tl_error *err);

#endif
