/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread that sends batches to the store, and asks it what the loop wants to know. It takes
 * what came since the last time, sends all of it in one pipeline, and posts the answers back to the
 * loop; meanwhile the next batches gather.
 *
 * A batch whose outcome is unknown (the connection broke or the store fell silent) is sent again,
 * the same bytes under the same number, until the store takes it; the function apply ignores
 * repeats. A refusal of a repeat (the store is loading, full or read-only) says nothing about the
 * first attempt: it is repeated, with backoff, for a minute at most. A batch that was never sent,
 * or that the store refused at the first attempt, is reported as refused immediately.
 *
 * Whether the store refuses all batches, as with a full disk, is learned from its answers to them;
 * while it does, and no batch comes, one small command a second looks whether it still does.
 */
#ifndef TL_INGEST_H
#define TL_INGEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <uv.h>

#include "common/auth/ticket.h"
#include "common/base/error.h"
#include "common/base/metrics.h"
#include "common/store/redis.h"
#include "common/wire/events.h"
#include "common/wire/names.h"
#include "worker/feed/outbox.h"

struct tl_ingest;

/* What the store knows about a visitor whose place is not in our line. */
enum tl_lookup_found {
    TL_LOOKUP_NOWHERE,
    TL_LOOKUP_ALIVE, /* waiting or active at that place: our line is not up to date */
    TL_LOOKUP_ENDED,
    TL_LOOKUP_FAILED, /* the store did not answer */
};

/* Waits told to visitors that came true. */
struct tl_promised {
    uint64_t judged, early, late; /* all; admitted before and after the range told */
    uint64_t error_percent;       /* distances from the true waits, in percent of these, added up */
};

struct tl_batch_receipt {
    uint64_t number;
    enum tl_batch_fate fate;
    const char *entry;              /* TAKEN: the entry's id in the ingest stream; else "" */
    const struct tl_error *refusal; /* unless TAKEN */
};

enum tl_ingest_kind {
    TL_INGEST_BATCH,  /* to tl_ingest_send */
    TL_INGEST_CHECK,  /* to tl_ingest_check */
    TL_INGEST_LOOKUP, /* to tl_ingest_look */
    TL_INGEST_DRAWN,  /* to tl_ingest_drawn */
    TL_INGEST_STORE,  /* to nothing: the state of the store changed */
    TL_INGEST_NONE,   /* nobody waits for it: is not told */
};

/* What the thread tells the loop, which borrows it and what it leads to. */
struct tl_ingest_answer {
    enum tl_ingest_kind kind;
    char queue[TL_QUEUE_NAME_MAX + 1];
    uint64_t number; /* of the batch; the one that was asked with */
    union {
        struct tl_batch_receipt receipt; /* BATCH */
        struct tl_batch_check check;     /* CHECK */
        struct {                         /* LOOKUP */
            enum tl_lookup_found found;
            enum tl_reason reason; /* of an end */
        };
        struct {             /* DRAWN */
            const void *ids; /* NULL: the store could not say */
            size_t length;
        };
        struct { /* STORE */
            bool up;
            /* TL_ERR_MISCONF or TL_ERR_OOM while it answers, but takes no batch; else TL_OK. */
            enum tl_error_kind refuses;
        };
    };
};

struct tl_ingest_settings {
    struct tl_redis_settings redis;
    const char *key_prefix; /* must outlive the thread */
    struct tl_metrics *metrics;
    void *context;
    /* Called on the loop's thread, once for each question, unless the ingest is freed before. */
    void (*answered)(void *context, const struct tl_ingest_answer *answer);
};

struct tl_ingest *tl_ingest_new(uv_loop_t *loop, const struct tl_ingest_settings *settings,
                                struct tl_error *err);
/* Sends a batch, and takes over its bytes (to free). joins: it has a JOIN; without one it is taken
 * at the memory limit too. At most one batch of a queue may be pending.
 * False when out of memory: then the bytes stay the caller's. */
bool tl_ingest_send(struct tl_ingest *ingest, const char *queue, uint64_t number, void *bytes,
                    size_t length, bool joins);
/* Asks the store what became of this worker's batch. False when out of memory. */
bool tl_ingest_check(struct tl_ingest *ingest, const char *queue, const char *worker,
                     uint64_t number, const char *entry);
/* Asks the store about the visitor and the place of a ticket. A pending ticket has no number: ENDED
 * if a place of the visitor ended after the second in which it was issued, else NOWHERE. False when
 * out of memory. */
bool tl_ingest_look(struct tl_ingest *ingest, const char *queue, const struct tl_ticket *ticket,
                    uint64_t number);
/* Notes signs of misuse at a queue (common/store/signs.h), or what the site reports
 * (common/store/feedback.h), once: it is lost if the store does not take it. False when out of
 * memory. */
enum tl_note { TL_NOTE_SIGNS, TL_NOTE_FEEDBACK };
bool tl_ingest_note(struct tl_ingest *ingest, enum tl_note note, const char *queue,
                    const char *text);
/* Adds what came true of the waits told at a queue to its totals, once: lost as above, and when out
 * of memory. */
void tl_ingest_promised(struct tl_ingest *ingest, const char *queue,
                        const struct tl_promised *promised);
/* Asks the store for n draw ids of the queue's draw, from this rank on, from 1; it gives fewer
 * bytes if it has not as many. False when out of memory. */
bool tl_ingest_drawn(struct tl_ingest *ingest, const char *queue, uint64_t from, uint64_t n,
                     uint64_t number);
/* Stops the thread after its current round trip, and frees. What was not sent is dropped, without
 * an answer. The loop must run one more turn to close the handle. */
void tl_ingest_free(struct tl_ingest **ingest);

#endif
