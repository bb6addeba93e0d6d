/*
 * The commands of one queue on their way: gathered into batches, sent one batch at a time, then
 * waiting to be applied.
 *
 *   gathered -> queued -> sending -> sent -> applied (or refused on the way)
 *
 * While one batch is being sent the next one gathers, so batches grow with the load and with the
 * store's latency by themselves. Batch numbers count up from 1 and belong to one payload each; a
 * number of a refused batch is not used again. With one batch of a queue in the air at a time, a
 * repeat after an unknown outcome can never arrive behind a later number, where the apply script
 * would take it for applied.
 *
 * Every pending command is settled exactly once. Knows nothing of HTTP, threads or the store.
 */
#ifndef TL_OUTBOX_H
#define TL_OUTBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/wire/batch.h"
#include "common/wire/events.h"
#include "common/wire/names.h"
#include "common/wire/place.h"

struct tl_outbox;

/* One JOIN, LEAVE, COMPLETE or RENEW under way. Owned by the outbox. */
struct tl_pending_command {
    enum tl_command_kind kind;
    unsigned lane;                    /* JOIN */
    tl_place place;                   /* the others */
    bool sent;                        /* the store has it */
    bool invited;                     /* JOIN: spends an invite, and is no other request\'s join */
    void *waiters;                    /* requests held for it: a list of the caller's making */
    struct tl_pending_command *chain; /* of the table of joins */
    char visitor[TL_VISITOR_MAX + 1];
};

enum tl_pending_end {
    TL_PENDING_APPLIED, /* with an outcome */
    TL_PENDING_REFUSED, /* the store does not have it */
    TL_PENDING_LOST,    /* the store had it, but what became of it passed us by */
};

struct tl_pending_result {
    enum tl_pending_end end;
    enum tl_outcome outcome;
    tl_place place; /* JOIN: where the visitor stands */
};

/* Told of the end of every pending command, which is freed afterwards. May add to the outbox,
 * except while it is being freed. */
typedef void tl_outbox_settle(void *context, struct tl_pending_command *pending,
                              const struct tl_pending_result *result);

struct tl_outbox *tl_outbox_new(const char *worker_id, tl_outbox_settle *settle, void *context);
/* Settles all that is left as lost or refused. */
void tl_outbox_free(struct tl_outbox **outbox);

/* A join of this visitor: the one under way if there is one. NULL when out of memory. */
struct tl_pending_command *tl_outbox_join(struct tl_outbox *outbox, const char *visitor,
                                          unsigned lane);
/* The same spending an invite: always a join of its own, since the invite decides. */
struct tl_pending_command *tl_outbox_join_invited(struct tl_outbox *outbox, const char *visitor,
                                                  unsigned lane, const char *invite,
                                                  uint64_t invite_until_ms);
/* LEAVE, COMPLETE or RENEW. NULL when out of memory. */
struct tl_pending_command *tl_outbox_command(struct tl_outbox *outbox, enum tl_command_kind kind,
                                             const char *visitor, tl_place place);
/* SEEN. False when out of memory. */
bool tl_outbox_seen(struct tl_outbox *outbox, uint64_t first_seq, uint64_t count);

/* The next batch to send, unless one is being sent or there is nothing. The payload is the caller's
 * to free. */
struct tl_outbox_payload {
    uint64_t number;
    void *bytes;
    size_t length;
    size_t n_commands;
};
bool tl_outbox_next(struct tl_outbox *outbox, struct tl_outbox_payload *payload);
/* The batch being sent is in the store, or has been refused. */
void tl_outbox_sent(struct tl_outbox *outbox, uint64_t number, bool taken);
/* An APPLIED event of this worker: also the end of everything before it. */
void tl_outbox_applied(struct tl_outbox *outbox, const struct tl_event *event);
/* Events were missed: what is in the store may have been applied, so it no longer counts as under
 * way. */
void tl_outbox_missed(struct tl_outbox *outbox);

/* Commands under way that count. */
size_t tl_outbox_count(const struct tl_outbox *outbox);
/* Has everything been handed to the store or refused? */
bool tl_outbox_flushed(const struct tl_outbox *outbox);
/* The number the batch being gathered will have: commands added up to now are in batches up to it.
 */
uint64_t tl_outbox_gathering(const struct tl_outbox *outbox);
/* Is every batch up to this number settled? */
bool tl_outbox_settled(const struct tl_outbox *outbox, uint64_t number);

#endif
