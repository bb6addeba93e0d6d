/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread that sends batches to the store. It takes the batches of all queues, sends them in one
 * pipeline, and posts the results back to the loop; meanwhile the next batches gather.
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
#include "worker/feed/exchange.h"
#include "worker/feed/outbox.h"

struct tl_ingest;

struct tl_batch_receipt {
    uint64_t number;
    enum tl_batch_fate fate;
    const char *entry;              /* TAKEN: the entry's id in the ingest stream; else "" */
    const struct tl_error *refusal; /* unless TAKEN */
};

struct tl_ingest_settings {
    struct tl_redis_settings redis;
    const char *key_prefix; /* must outlive the thread */
    struct tl_metrics *metrics;
    void *context;
    /* Called on the loop's thread. */
    void (*sent)(void *context, const char *queue, const struct tl_batch_receipt *receipt);
    void (*checked)(void *context, const char *queue, uint64_t number,
                    const struct tl_batch_check *check);
    void (*found)(void *context, uint64_t token, enum tl_lookup_found found, enum tl_reason reason);
    /* ids NULL: the store could not say. */
    void (*drawn)(void *context, uint64_t token, const void *ids, size_t length);
    /* The state of the store changed. refuses: TL_ERR_MISCONF or TL_ERR_OOM while it answers, but
     * takes no batch; else TL_OK. */
    void (*store)(void *context, bool up, enum tl_error_kind refuses);
};

struct tl_ingest *tl_ingest_new(uv_loop_t *loop, const struct tl_ingest_settings *settings,
                                struct tl_error *err);
/* Sends a batch, and takes over its bytes (to free). joins: it has a JOIN; without one it is taken
 * at the memory limit too. At most one batch of a queue may be pending.
 * False when out of memory: then the bytes stay the caller's. */
bool tl_ingest_send(struct tl_ingest *ingest, const char *queue, uint64_t number, void *bytes,
                    size_t length, bool joins);
/* Asks the store what became of this worker's batch; `checked` is called once, unless the ingest is
 * freed before. False when out of memory. */
bool tl_ingest_check(struct tl_ingest *ingest, const char *queue, const char *worker,
                     uint64_t number, const char *entry);
/* Asks the store about the visitor and the place of a ticket; `found` is called with token once,
 * unless the ingest is freed before. A pending ticket has no number: ENDED if a place of the
 * visitor ended after the second in which it was issued, else NOWHERE. */
bool tl_ingest_look(struct tl_ingest *ingest, const char *queue, const struct tl_ticket *ticket,
                    uint64_t token);
/* Sends signs of misuse at a queue (common/store/signs.h), once: they are lost if the store does
 * not take them, or when out of memory. */
void tl_ingest_signs(struct tl_ingest *ingest, const char *queue, const char *text);
/* The same for what the site reports (common/store/feedback.h). False when out of memory. */
bool tl_ingest_feedback(struct tl_ingest *ingest, const char *queue, const char *text);
/* Adds what came true of the waits told at a queue to its totals, once: lost as above. */
void tl_ingest_promised(struct tl_ingest *ingest, const char *queue,
                        const struct tl_promised *promised);
/* Asks the store for n draw ids of the queue's draw, from this rank on, from 1; `drawn` is called
 * with token once, unless the ingest is freed before, with fewer bytes if it has not as many. False
 * when out of memory. */
bool tl_ingest_drawn(struct tl_ingest *ingest, const char *queue, uint64_t from, uint64_t n,
                     uint64_t token);
/* Stops the thread after its current round trip, and frees. What was not sent is dropped, without a
 * callback. The loop must run one more turn to close the handle. */
void tl_ingest_free(struct tl_ingest **ingest);

#endif
