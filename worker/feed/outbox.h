/*
 * The commands of one queue between a worker and the store: gathered into batches, sent one batch
 * at a time, then pending until they are applied.
 *
 *   gathered -> closed -> sending -> sent -> applied (or refused on the way)
 *
 * While one batch is being sent the next one gathers, so the size of batches follows the load and
 * the store's latency. Batch numbers count up from 1 and belong to one payload each; the number of
 * a refused batch is not used again. Only one batch of a queue is being sent at a time: so a repeat
 * after an unknown outcome never arrives behind a later number, where the apply script would take
 * it for applied.
 *
 * Every pending command is settled exactly once. Knows nothing of HTTP, threads or the store.
 */
#ifndef TL_OUTBOX_H
#define TL_OUTBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "worker/feed/pending.h"

struct tl_outbox;

/* Called once for every pending command, which is freed afterwards. May add to the outbox, except
 * while the outbox is being freed. */
typedef void tl_outbox_settle(void *context, struct tl_pending_command *pending,
                              const struct tl_pending_result *result);

struct tl_outbox *tl_outbox_new(const char *worker_id, tl_outbox_settle *settle, void *context);
/* Settles the remaining commands as lost or refused. */
void tl_outbox_free(struct tl_outbox **outbox);

/* Adds a JOIN of this visitor, or returns the one that is pending. NULL when out of memory. */
struct tl_pending_command *tl_outbox_join(struct tl_outbox *outbox, const char *visitor,
                                          unsigned lane);
/* A join that spends an invite: always a command of its own, since the invite decides. */
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
/* Settles the batch of an APPLIED event of this worker, and all batches sent before it. */
void tl_outbox_applied(struct tl_outbox *outbox, const struct tl_event *event);
/* Events were missed: batches in the store may have been applied, so they no longer count as
 * pending. */
void tl_outbox_missed(struct tl_outbox *outbox);

/* Pending commands. */
size_t tl_outbox_count(const struct tl_outbox *outbox);
/* Is each command in the store or refused? */
bool tl_outbox_flushed(const struct tl_outbox *outbox);
/* The number of the batch that gathers now: every command added so far is in a batch up to it. */
uint64_t tl_outbox_gathering(const struct tl_outbox *outbox);
/* Is every batch up to this number settled? */
bool tl_outbox_settled(const struct tl_outbox *outbox, uint64_t number);

#endif
