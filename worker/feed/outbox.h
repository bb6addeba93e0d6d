/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The commands of one queue between a worker and the store: gathered into batches, sent one batch
 * at a time, then pending until they are applied.
 *
 *   gathered -> closed -> sending -> sent -> applied (or refused on the way)
 *      ^                     |        |
 *      +---------------------+--------+  outcome unknown: gathered again, under a new number
 *
 * While one batch is being sent the next one gathers, so the size of batches follows the load and
 * the store's latency. Batch numbers count up from 1 and belong to one payload each; the number of
 * a refused batch is not used again. Only one batch of a queue is being sent at a time: so a repeat
 * after an unknown outcome never arrives behind a later number, where the function apply would take
 * it for applied.
 *
 * Every pending command is settled exactly once, and in the end in any case. When the outcome of a
 * batch in the store is overdue, or events were missed, the caller asks the store whether the batch
 * still waits there to be applied. If not, its commands are gathered again: they are idempotent,
 * and requests that wait for them stay attached. After a few attempts they are settled as lost.
 *
 * Knows nothing of HTTP, threads or the store. now_ms is local monotonic time.
 */
#ifndef TL_OUTBOX_H
#define TL_OUTBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sodium.h>

#include "common/line/placemap.h"
#include "common/wire/batch.h"
#include "common/wire/events.h"
#include "common/wire/names.h"
#include "common/wire/place.h"

enum { TL_PENDING_NUMBERS = TL_COMMAND_NUMBERS - 1 };

/* A command that was accepted and whose outcome is not known yet: one JOIN, LEAVE, COMPLETE, RENEW,
 * CLAIM, EXTEND, HAND_OVER, RESTORE, LOST or CALLED. Owned by the outbox. */
struct tl_visit;

struct tl_pending_command {
    struct tl_visit *waiters; /* the caller's list of visits that wait for it */
    tl_place place;           /* of all but JOIN, LOST, CALLED */
    char *invite; /* JOIN: it spends this invite, and serves one request only; or NULL */
    uint64_t invite_until_ms; /* as in struct tl_command */
    uint64_t made_ms;         /* JOIN: when, by the store's clock, Unix ms; 0: not known */
    uint64_t numbers[TL_PENDING_NUMBERS]; /* behind the place; LOST, CALLED: all */
    unsigned lane;                        /* JOIN */
    enum tl_command_kind kind;
    unsigned again; /* how often it was gathered again */
    bool leaves;    /* JOIN: the visitor gives the place up as soon as it is known */
    char visitor[TL_VISITOR_MAX + 1];
};

enum tl_pending_end {
    TL_PENDING_APPLIED, /* with an outcome */
    TL_PENDING_REFUSED, /* the store never had it */
    TL_PENDING_LOST,    /* the store may have applied it, and nothing more is heard of it */
};

/* What became of a batch on its way into the store. */
enum tl_batch_fate {
    TL_BATCH_TAKEN,
    TL_BATCH_REFUSED, /* the store does not have it */
    TL_BATCH_UNKNOWN, /* the store may have it; it is not sent again under this number */
};

/* What the store says about a batch that it took. */
struct tl_batch_check {
    bool waits;     /* it is in the stream and not applied yet; or the store did not say */
    uint64_t event; /* applied: its outcome is in an event up to this number. 0: it is gone */
};

#define TL_ENTRY_ID_MAX 48 /* bytes of a stream entry's id, with the NUL */

struct tl_pending_result {
    enum tl_pending_end end;
    enum tl_outcome outcome;
    tl_place place; /* JOIN: the visitor's place */
};

/* Called once for every pending command, which is freed afterwards. May add to the outbox, except
 * while the outbox is being freed. */
typedef void tl_outbox_settle(void *context, struct tl_pending_command *pending,
                              const struct tl_pending_result *result);

/* Read where it is useful, written in outbox.c, but for `generation`. */
struct tl_outbox {
    char worker_id[TL_WORKER_ID_MAX + 1];
    tl_outbox_settle *settle;
    void *context;
    const int64_t *store_offset_ms; /* or NULL */
    uint64_t generation;            /* of the places to come, as its owner says; 0: not known */
    /* The batch being gathered: with the generation of its places, and when its first JOIN was
     * made; and the pending command of each of its commands. */
    struct tl_batch_writer writer;
    struct tl_pending_command **pending;
    size_t pending_capacity;
    struct tl_placemap joins; /* key of a visitor -> its pending JOIN, unless it has an invite */
    unsigned char key[crypto_shorthash_KEYBYTES]; /* so that clients cannot choose keys */
    struct tl_outbox_batch *first, *last;         /* oldest first, without the one being gathered */
    uint64_t next_number; /* of the batch being gathered, the last with a command so far */
    uint64_t sending;     /* the number of the batch being sent, or 0 */
    uint64_t checking;    /* the number of the batch that the store is asked about, or 0 */
    size_t count;         /* pending commands */
};

/* store_offset_ms: the store's Unix time minus local monotonic time, which may change: joins tell
 * when they were made. One that comes late then gives no place to a visitor whose place has ended
 * since. NULL: they do not. NULL when out of memory. */
struct tl_outbox *tl_outbox_new(const char *worker_id, const int64_t *store_offset_ms,
                                tl_outbox_settle *settle, void *context);
/* Settles the remaining commands as lost or refused. */
void tl_outbox_free(struct tl_outbox **outbox);

/* Adds a JOIN of this visitor, or returns the one that is pending. One that spends an invite, whose
 * id is remembered until then, is always a command of its own, since the invite decides. invite
 * NULL: none, and the time says nothing. NULL when out of memory. */
struct tl_pending_command *tl_outbox_join(struct tl_outbox *outbox, const char *visitor,
                                          unsigned lane, const char *invite,
                                          uint64_t invite_until_ms);
/* The JOIN of this visitor that is pending, not counting those with an invite; NULL: none. */
struct tl_pending_command *tl_outbox_joining(const struct tl_outbox *outbox, const char *visitor);
/* LEAVE, COMPLETE, RENEW, CLAIM or EXTEND, with numbers NULL; HAND_OVER or RESTORE, with the
 * numbers behind its place; LOST or CALLED of visitor "" and place 0. NULL when out of memory. */
struct tl_pending_command *tl_outbox_command(struct tl_outbox *outbox, enum tl_command_kind kind,
                                             const char *visitor, tl_place place,
                                             const uint64_t numbers[TL_PENDING_NUMBERS]);
/* SEEN. False when out of memory. */
bool tl_outbox_seen(struct tl_outbox *outbox, uint64_t first_seq, uint64_t count);

/* The next batch to send, unless one is being sent or there is nothing. The payload is the caller's
 * to free. */
struct tl_outbox_payload {
    uint64_t number;
    void *bytes;
    size_t length;
    size_t n_commands;
    bool joins; /* one of them is a JOIN */
};
bool tl_outbox_next(struct tl_outbox *outbox, struct tl_outbox_payload *payload);
/* What became of the batch being sent; entry: its id in the ingest stream, if it was taken. */
void tl_outbox_sent(struct tl_outbox *outbox, uint64_t number, enum tl_batch_fate fate,
                    const char *entry, int64_t now_ms);
/* Settles the batch of an APPLIED event of this worker. Batches sent before it were lost on the
 * way: their commands are gathered again. */
void tl_outbox_applied(struct tl_outbox *outbox, const struct tl_event *event);

/* The oldest batch in the store, if its outcome is overdue: ask the store what became of the entry,
 * and answer with tl_outbox_checked. entry is borrowed. event: number of the last event read here;
 * gathers again what is gone, and what was applied up to that event. */
bool tl_outbox_overdue(struct tl_outbox *outbox, uint64_t event, int64_t now_ms, uint64_t *number,
                       const char **entry);
void tl_outbox_checked(struct tl_outbox *outbox, uint64_t number,
                       const struct tl_batch_check *check, int64_t now_ms);
/* Events were missed: the outcomes of all batches sent so far are overdue now. */
void tl_outbox_missed(struct tl_outbox *outbox);
/* The generation of the places is another one: settles all commands of places of those before as
 * lost. */
void tl_outbox_forget_places(struct tl_outbox *outbox);

/* For how long the oldest batch in the store has waited to be applied; 0: none waits. */
int64_t tl_outbox_lag_ms(const struct tl_outbox *outbox, int64_t now_ms);
/* Is each command in the store or refused? */
bool tl_outbox_flushed(const struct tl_outbox *outbox);
/* Is every batch up to this number settled? */
bool tl_outbox_settled(const struct tl_outbox *outbox, uint64_t number);

#endif
