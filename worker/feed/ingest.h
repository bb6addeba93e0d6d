/*
 * The thread that sends batches to the store. It takes the batches of all queues, sends them in one
 * pipeline, and posts the results back to the loop; meanwhile the next batches gather.
 *
 * A batch whose outcome is unknown (the connection broke or the store fell silent) is sent again,
 * the same bytes under the same number, until the store answers; the apply script ignores repeats.
 * A batch that was never sent, or that the store refused, is reported as refused immediately.
 */
#ifndef TL_INGEST_H
#define TL_INGEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <uv.h>

#include "common/base/error.h"
#include "common/base/metrics.h"
#include "common/store/redis.h"
#include "common/wire/events.h"

struct tl_ingest;

/* What the store knows about a visitor whose place is not in our line. */
enum tl_lookup_found {
    TL_LOOKUP_NOWHERE,
    TL_LOOKUP_ALIVE, /* waiting or active at that place: our line is not up to date */
    TL_LOOKUP_ENDED,
    TL_LOOKUP_FAILED, /* the store did not answer */
};

struct tl_ingest_settings {
    struct tl_redis_settings redis;
    const char *key_prefix; /* must outlive the thread */
    struct tl_metrics *metrics;
    void *context;
    /* Called on the loop's thread. */
    void (*sent)(void *context, const char *queue, uint64_t number,
                 const struct tl_error *refusal); /* NULL: the store has it */
    void (*found)(void *context, uint64_t token, enum tl_lookup_found found, enum tl_reason reason);
    void (*store)(void *context, bool up);
};

struct tl_ingest *tl_ingest_new(uv_loop_t *loop, const struct tl_ingest_settings *settings,
                                struct tl_error *err);
/* Sends a batch, and takes over its bytes (to free). At most one batch of a queue may be pending.
 * False when out of memory: then the bytes stay the caller's. */
bool tl_ingest_send(struct tl_ingest *ingest, const char *queue, uint64_t number, void *bytes,
                    size_t length);
/* Asks the store about a visitor; `found` is called with token once, unless the ingest is freed
 * before. */
bool tl_ingest_look(struct tl_ingest *ingest, const char *queue, const char *visitor,
                    tl_place place, uint64_t token);
/* Stops the thread after its current round trip, and frees. What was not sent is dropped, without a
 * callback. The loop must run one more turn to close the handle. */
void tl_ingest_free(struct tl_ingest **ingest);

#endif
