/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread that sends batches to the store, and asks it what the loop wants to know. It takes
 * what came since the last time, sends all of it in one pipeline, and posts the replies back to the
 * loop; meanwhile the next batches gather. In a cluster each node answers when it can: the replies
 * of others, and what comes for them meanwhile, do not wait for it.
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
#include "common/store/args.h"
#include "common/store/redis.h"
#include "common/wire/events.h"
#include "common/wire/names.h"
#include "common/wire/place.h"
#include "worker/feed/mailbox.h"
#include "worker/feed/outbox.h"

struct tl_ingest;

enum tl_ingest_kind {
    TL_INGEST_BATCH,
    TL_INGEST_CHECK,  /* what became of a batch */
    TL_INGEST_LOOKUP, /* of a visitor */
    TL_INGEST_DRAWN,  /* ids of a draw */
    TL_INGEST_NOTE,   /* whose reply nobody waits for */
    TL_INGEST_STORE,  /* no question: the state of the store has changed */
};

enum { TL_JOB_COMMANDS_MAX = 3 };

/* A question goes from the loop to the thread and comes back with the replies. */
struct tl_job {
    struct tl_message message;
    enum tl_ingest_kind kind;
    char queue[TL_QUEUE_NAME_MAX + 1];
    uint64_t number; /* the one that was asked with; of the batch */
    struct tl_args commands[TL_JOB_COMMANDS_MAX];
    struct tl_reply *replies[TL_JOB_COMMANDS_MAX];
    size_t n;                /* commands */
    struct tl_error refusal; /* of the last command that was refused; TL_OK: none was */
    const char *denied;      /* what a user of the store who may not do it means; or NULL */
    /* LOOKUP: */
    tl_place place;
    int64_t since_ms; /* of a pending ticket: an end before this Unix time was that of an earlier
                         place, and so was one of a visitor who holds a place */
    /* STORE: */
    bool up;
    enum tl_error_kind refuses; /* TL_ERR_MISCONF or TL_ERR_OOM while it answers, but takes no
                                   batch; else TL_OK */
    /* BATCH: */
    void *bytes;
    size_t length;
    bool joins;    /* it has a JOIN; without one it is taken at the memory limit too */
    bool doubtful; /* an attempt has no known outcome: the store may have it */
    /* The thread's own: */
    struct tl_redis *redis; /* its replies are due from this connection... */
    uint64_t epoch;         /* ...as long as its epoch is this one... */
    int64_t sent_us;        /* ...and were asked for then */
    bool past_limit;        /* is sent in the way that works at the memory limit */
    bool tried;             /* sent at least once */
    int64_t retry_ms;       /* not before; 0: at once */
    int64_t give_up_ms;     /* repeats are refused: until then they go on; 0: none was */
};

struct tl_ingest_settings {
    struct tl_redis_settings redis;
    const char *key_prefix; /* must outlive the thread */
    struct tl_metrics *metrics;
    void *context;
    /* Called on the loop's thread, once for each question but a NOTE, unless the ingest is freed
     * before. Borrows the job. */
    void (*answered)(void *context, const struct tl_job *job);
};

struct tl_ingest *tl_ingest_new(uv_loop_t *loop, const struct tl_ingest_settings *settings,
                                struct tl_error *err);
/* Names the job's keys start with this. */
const char *tl_ingest_key_prefix(const struct tl_ingest *ingest);
/* Takes over a job. At most one batch of a queue may be pending. */
void tl_ingest_put(struct tl_ingest *ingest, struct tl_job *job);
/* Stops the thread after its current round trip, and frees. What was not sent is dropped, without
 * an answer. The loop must run one more turn to close the handle. */
void tl_ingest_free(struct tl_ingest **ingest);

/* ---- questions (questions.c): each comes back as a job of its kind, with its number and queue
 * ---- */

/* Sends a batch (BATCH), and takes over its bytes (to free). joins: it has a JOIN; without one it
 * is taken at the memory limit too. At most one batch of a queue may be pending. False when out of
 * memory: then the bytes stay the caller's. */
bool tl_ingest_send(struct tl_ingest *ingest, const char *queue, uint64_t number, void *bytes,
                    size_t length, bool joins);
/* Asks the store what became of this worker's batch (CHECK). False when out of memory. */
bool tl_ingest_check(struct tl_ingest *ingest, const char *queue, const char *worker,
                     uint64_t number, const char *entry);
/* Asks the store about the visitor and the place of a ticket (LOOKUP). A pending ticket has no
 * number: ENDED if a place of the visitor ended after the second in which it was issued, else
 * NOWHERE. False when out of memory. */
bool tl_ingest_look(struct tl_ingest *ingest, const char *queue, const struct tl_ticket *ticket,
                    uint64_t number);
/* Asks the store for n draw ids of the queue's draw (DRAWN), from this rank on, from 1; it gives
 * fewer bytes if it has not as many. False when out of memory. */
bool tl_ingest_drawn(struct tl_ingest *ingest, const char *queue, uint64_t from, uint64_t n,
                     uint64_t number);
/* Notes signs of misuse at a queue (common/store/signs.h), or what the site reports
 * (common/store/feedback.h), once: it is lost if the store does not take it. False when out of
 * memory. */
enum tl_note { TL_NOTE_SIGNS, TL_NOTE_FEEDBACK };
bool tl_ingest_note(struct tl_ingest *ingest, enum tl_note note, const char *queue,
                    const char *text);
/* Adds what came true of the waits told at a queue to its totals, once: lost as above, and when out
 * of memory. By enum tl_promised_field: all; those admitted before and after the range told;
 * distances from the true waits, in percent of these, added up. */
enum { TL_PROMISED_FIELDS = TL_PROMISED_ETA_ERROR + 1 };
void tl_ingest_promised(struct tl_ingest *ingest, const char *queue,
                        const uint64_t promised[TL_PROMISED_FIELDS]);

/* ---- answers: borrowed from the job ---- */

struct tl_batch_receipt {
    uint64_t number;
    enum tl_batch_fate fate;
    const char *entry;              /* TAKEN: the entry's id in the ingest stream; else "" */
    const struct tl_error *refusal; /* unless TAKEN */
};
struct tl_batch_receipt tl_ingest_receipt(const struct tl_job *batch);
struct tl_batch_check tl_ingest_checked(const struct tl_job *check);

/* What the store knows about a visitor whose place is not in our line. */
enum tl_lookup_found {
    TL_LOOKUP_NOWHERE,
    TL_LOOKUP_ALIVE,  /* waiting or active at that place: our line is not up to date */
    TL_LOOKUP_ENDED,  /* for this reason */
    TL_LOOKUP_FAILED, /* the store did not answer */
};
enum tl_lookup_found tl_ingest_found(const struct tl_job *lookup, enum tl_reason *reason);
/* NULL: the store could not say. */
const void *tl_ingest_ids(const struct tl_job *drawn, size_t *length);

#endif
