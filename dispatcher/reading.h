/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading the ingest streams of the held queues: by one XREADGROUP, or by one for each in a cluster
 * (common/store/streams.h). What was read is applied at once (apply.h), and what was read earlier
 * and not applied comes first. A queue whose stream cannot be read or applied is mended or set
 * aside; the others go on.
 *
 * Where a function returns false with err, the error concerns all queues.
 */
#ifndef TL_READING_H
#define TL_READING_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/log.h"
#include "common/role/role_main.h"
#include "common/store/args.h"
#include "common/store/streams.h"

#include "dispatcher/apply.h"

/* The metrics of the dispatcher, of which most are counted here. */
enum {
    TL_DISPATCHED_BATCHES,
    TL_DISPATCHED_REPEATED,
    TL_DISPATCHED_COMMANDS,
    TL_DISPATCHED_POISON,
    TL_DISPATCHED_LOST,
    TL_DISPATCHED_TAKEOVERS,
    TL_DISPATCHED_UNAPPLIED,
    TL_DISPATCHED_AGE,
    TL_DISPATCHED_TIME,
    TL_DISPATCHED_METRICS,
};
/* Those of each queue. */
enum {
    TL_DISPATCHED_QUEUE_UNAPPLIED,
    TL_DISPATCHED_QUEUE_AGE,
    TL_DISPATCHED_QUEUE_COMMANDS,
    TL_DISPATCHED_QUEUE_METRICS,
};

/* The state of one held queue. */
struct tl_read_queue {
    bool pending;                   /* apply pending entries before reading on */
    int64_t taken_ms;               /* since when this program reads it */
    struct tl_stream *stream;       /* of ingest */
    bool behind;                    /* there may be entries that are not applied */
    bool refused;                   /* the last entries were refused because of their order */
    char applied[TL_STREAM_ID_MAX]; /* id of the last entry applied; "" for none */
    bool trim;                      /* `applied` has moved since the last trim */
};

/* Zeroed at first. */
struct tl_reading {
    struct tl_process *process;
    struct tl_streams streams; /* of ingest; their things are the held queues */
    struct tl_apply *apply;
    struct tl_args args;
    size_t next_claim; /* the first queue to ask about other consumers */
    struct tl_log_limit claim_log;
    int64_t pending_due_ms; /* read pending entries then in any case */
    int64_t trim_due_ms;
    uint64_t read_entries; /* at a time */
};

bool tl_reading_open(struct tl_reading *self, struct tl_process *process, struct tl_error *err);
void tl_reading_close(struct tl_reading *self);
/* Reads this queue from now on, until it is dropped. */
bool tl_reading_take(struct tl_reading *self, struct tl_held_queue *held, struct tl_error *err);
void tl_reading_drop(struct tl_reading *self, const struct tl_held_queue *held);
/* Entries of the queue that were read may not have been applied: reads them again. */
void tl_reading_again(struct tl_held_queue *held);

/* Applies the entries that were read but not acknowledged, oldest first, until none is left. */
bool tl_reading_pending(struct tl_reading *self, int64_t now_ms, struct tl_error *err);
/* Waits up to block_ms for new entries of all held queues that are not set aside, and applies
 * them. */
bool tl_reading_new(struct tl_reading *self, int64_t now_ms, int64_t block_ms,
                    struct tl_error *err);
/* Drops applied entries from the streams. */
bool tl_reading_trim(struct tl_reading *self, int64_t now_ms, struct tl_error *err);

/* Is the queue set aside? */
bool tl_reading_rests(const struct tl_reading *self, const struct tl_held_queue *held,
                      int64_t now_ms);
/* Entries of a queue could not be read or applied: mends it or sets it aside. */
bool tl_reading_failed(struct tl_reading *self, struct tl_held_queue *held, int64_t now_ms,
                       struct tl_error *err);
/* When to do a thing again that is done every every_ms, and began at this time. */
int64_t tl_reading_due_ms(int64_t began_ms, int64_t every_ms);

#endif
