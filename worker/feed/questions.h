/* SPDX-License-Identifier: Apache-2.0 */
/* What a worker sends to the store and asks it through the ingest thread, and what the answers say.
 * A question comes back as a job of its kind, with the number and queue that were given. */
#ifndef TL_QUESTIONS_H
#define TL_QUESTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/auth/ticket.h"
#include "common/wire/events.h"
#include "worker/feed/ingest.h"
#include "worker/feed/outbox.h"

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
